# Habitual names for what exists; the work is in npm scripts and scripts/.
.PHONY: setup install uninstall check test smoke-remote build bench clean

PREFIX ?= $(shell [ "$$(id -u)" = 0 ] && echo /usr/local || echo "$$HOME/.local")
NAME ?= all

setup: ## npm dependencies, the pinned Node.js, Debian packages
	@sh scripts/setup.sh

install: setup ## put `sandboxer` of this checkout on the PATH
	@mkdir -p "$(DESTDIR)$(PREFIX)/bin"
	@ln -sfn "$(CURDIR)/sandboxer" "$(DESTDIR)$(PREFIX)/bin/sandboxer"
	@echo "installed $(DESTDIR)$(PREFIX)/bin/sandboxer -> $(CURDIR)/sandboxer"

uninstall:
	@rm -f "$(DESTDIR)$(PREFIX)/bin/sandboxer"

check test: ## every test level
	@npm test

smoke-remote: ## establish and tear down a sandbox on a registered host
	@if [ -z "$$SANDBOXER_HOST" ]; then \
	  echo 'smoke-remote needs SANDBOXER_HOST, the name of a registered host: make smoke-remote SANDBOXER_HOST=sandboxer01' >&2; \
	  exit 2; \
	fi
	@./sandboxer smoke --host "$$SANDBOXER_HOST"

build: ## compile src/ to dist/
	@npm run -s build

bench: ## make bench NAME=control.create
	@npm run -s bench -- $(NAME)

clean:
	@rm -rf dist .build coverage agent/build

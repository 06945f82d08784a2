import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { InputTrees } from '../../core/ports/inputs.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** The file trees of a sandbox, as its backend may read them. */
export function inputTrees(deps: ControlPorts, { inputs }: Pick<SandboxRecord, 'inputs'>): InputTrees {
  return {
    list: inputs,
    async open(name) {
      const tree = inputs.find((input) => input.name === name);
      if (tree && deps.inputs) return deps.inputs.open(tree.uploadId);
      throw new SandboxerError('SBX_NOT_FOUND', `This sandbox has no input "${name}".`);
    },
  };
}

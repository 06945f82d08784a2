CREATE TABLE things (id serial PRIMARY KEY, name text NOT NULL);

CREATE TABLE visits (at datetime);

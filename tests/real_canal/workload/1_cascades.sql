-- Foreign keys. InnoDB does not write what they change to the binary log.
CREATE DATABASE family;
CREATE TABLE family.parents (id INT PRIMARY KEY, v VARCHAR(10));
CREATE TABLE family.children (
  id INT PRIMARY KEY, parent INT, v VARCHAR(10),
  FOREIGN KEY (parent) REFERENCES family.parents (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE family.friends (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES family.parents (id));
INSERT INTO family.parents VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO family.children VALUES (10, 1, 'x'), (20, 2, 'y'), (30, 3, 'z');
INSERT INTO family.friends VALUES (1, 3);
DELETE FROM family.parents WHERE id = 1;
UPDATE family.parents SET id = 22 WHERE id = 2;

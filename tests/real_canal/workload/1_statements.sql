-- Statements that remove or move rows of which no row event tells, and statements that look like them.
CREATE DATABASE statements;
CREATE TABLE statements.emptied (id INT PRIMARY KEY, v INT);
INSERT INTO statements.emptied VALUES (1, 1), (2, 2);
TRUNCATE TABLE statements.emptied;
INSERT INTO statements.emptied VALUES (2, 22);
CREATE TABLE statements.dropped (id INT PRIMARY KEY, v INT);
INSERT INTO statements.dropped VALUES (1, 1);
DROP TABLE statements.dropped;
CREATE TABLE statements.dropped (id INT PRIMARY KEY, v INT);
INSERT INTO statements.dropped VALUES (2, 2);
CREATE TABLE statements.renamed (id INT PRIMARY KEY, v INT);
INSERT INTO statements.renamed VALUES (1, 1);
RENAME TABLE statements.renamed TO statements.newly_named;
INSERT INTO statements.newly_named VALUES (2, 2);
CREATE TABLE statements.by_day (id INT, day INT, PRIMARY KEY (id, day)) PARTITION BY RANGE (day)
  (PARTITION p1 VALUES LESS THAN (10), PARTITION p2 VALUES LESS THAN (20), PARTITION p3 VALUES LESS THAN (30));
CREATE TABLE statements.by_week LIKE statements.by_day;
CREATE TABLE statements.by_month LIKE statements.by_day;
CREATE TABLE statements.by_year LIKE statements.by_day;
CREATE TABLE statements.archive (id INT, day INT, PRIMARY KEY (id, day));
INSERT INTO statements.by_day VALUES (1, 5), (2, 15), (3, 25);
INSERT INTO statements.by_week VALUES (1, 5), (2, 15), (3, 25);
INSERT INTO statements.by_month VALUES (1, 5), (2, 15), (3, 25);
INSERT INTO statements.by_year VALUES (1, 5), (2, 15), (3, 25);
INSERT INTO statements.archive VALUES (9, 9);
ALTER TABLE statements.by_day DROP PARTITION p1;
ALTER TABLE statements.by_week TRUNCATE PARTITION p2;
ALTER TABLE statements.by_month EXCHANGE PARTITION p1 WITH TABLE statements.archive;
-- These two keep all rows.
ALTER TABLE statements.by_year ADD PARTITION (PARTITION p4 VALUES LESS THAN (40));
ALTER TABLE statements.by_year REORGANIZE PARTITION p1, p2 INTO (PARTITION p0 VALUES LESS THAN (20));
INSERT INTO statements.by_year VALUES (4, 35);
CREATE VIEW statements.seen AS SELECT * FROM statements.emptied;
CREATE TEMPORARY TABLE statements.emptied_copy AS SELECT * FROM statements.emptied;
DROP TEMPORARY TABLE statements.emptied_copy;
DROP TABLE IF EXISTS statements.never_existed;
ANALYZE TABLE statements.emptied;
CREATE TABLE statements.copied (id INT PRIMARY KEY) AS SELECT id, v FROM statements.emptied;
-- The text is logged instead of rows.
CREATE TABLE statements.logged (id INT PRIMARY KEY, v INT);
INSERT INTO statements.logged VALUES (1, 1), (2, 2);
SET SESSION binlog_format = STATEMENT;
UPDATE statements.logged SET v = 3;
SET SESSION binlog_format = ROW;
INSERT INTO statements.logged VALUES (4, 4);

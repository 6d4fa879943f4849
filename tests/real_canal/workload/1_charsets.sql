-- Character sets. Canal decodes all of them as UTF-8, so the test names the columns that must be wrong.
CREATE DATABASE charsets;
CREATE TABLE charsets.words (
  id INT PRIMARY KEY,
  utf8mb4 VARCHAR(20) CHARACTER SET utf8mb4, utf8mb3 VARCHAR(20) CHARACTER SET utf8mb3,
  ascii VARCHAR(20) CHARACTER SET ascii,
  bin VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  latin1 VARCHAR(20) CHARACTER SET latin1, cp1251 VARCHAR(20) CHARACTER SET cp1251, gbk VARCHAR(20) CHARACTER SET gbk,
  sjis VARCHAR(20) CHARACTER SET sjis, ucs2 VARCHAR(20) CHARACTER SET ucs2, utf16 TEXT CHARACTER SET utf16);
INSERT INTO charsets.words VALUES
  (1, 'plain', 'plain', 'plain', 'plain', 'plain', 'plain', 'plain', 'plain', NULL, NULL),
  (2, '北京😀', '北京', '~', 'Ä', 'é£', 'ёж', '北京', '日本', NULL, NULL),
  (3, 'wide', 'wide', 'wide', 'wide', NULL, NULL, NULL, NULL, 'wide', 'wide');

-- What a validation met, for operators: JSON of a word and a text. The error beside it is what the client is told.

ALTER TABLE challenges ADD COLUMN cause TEXT

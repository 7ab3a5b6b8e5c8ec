-- The background loops that keep failing in a process: their names, joined by blanks. Empty if none fails, and for processes of every
-- version before this one.

ALTER TABLE workers ADD COLUMN failing TEXT NOT NULL DEFAULT ''

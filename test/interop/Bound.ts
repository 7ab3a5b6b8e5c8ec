import SqliteDatabase from "better-sqlite3"
import { Client } from "pg"

/* Bindings for accounts of clients that have no external account binding, and so cannot use a credential themselves. */

const trigger = "bind_accounts"

/**
 * Makes the database bind each new account of a profile to a credential. `database` is the file of SQLite or the URL of
 * PostgreSQL.
 */
export const bindAccounts = async (database: string, profile: string, kid: string): Promise<void> => {
  if (!database.startsWith("postgres")) {
    const opened = new SqliteDatabase(database, { timeout: 10_000 })
    try {
      opened.exec(
        `CREATE TRIGGER ${trigger} AFTER INSERT ON accounts WHEN NEW.profile = '${profile}'
         BEGIN UPDATE accounts SET eab_kid = x'${kid.replaceAll("-", "")}' WHERE id = NEW.id; END`
      )
    } finally {
      opened.close()
    }
    return
  }
  const client = new Client({ connectionString: database })
  await client.connect()
  try {
    await client.query(
      `CREATE FUNCTION ${trigger}() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN NEW.eab_kid := '\\x${kid.replaceAll("-", "")}'; RETURN NEW; END $$`
    )
    await client.query(
      `CREATE TRIGGER ${trigger} BEFORE INSERT ON accounts FOR EACH ROW WHEN (NEW.profile = '${profile}')
       EXECUTE FUNCTION ${trigger}()`
    )
  } finally {
    await client.end()
  }
}

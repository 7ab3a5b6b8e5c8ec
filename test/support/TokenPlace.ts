import { spawnSync } from "node:child_process"
import { mkdirSync, renameSync, unlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { softhsmModule } from "./Softhsm.ts"

/** A token of SoftHSM2 in a folder of its own. */
export interface TokenPlace {
  /** The variables with which programs find the token. */
  readonly env: { readonly [name: string]: string }
  /** The table `pkcs11` of a CA, without its head. */
  readonly toml: string
  /** Writes the file with the PIN. */
  readonly writePin: (pin: string) => void
  /** Takes the token away, or brings it back. */
  readonly move: (where: "away" | "back") => void
}

/** The PIN of every token. */
export const rightPin = "1234"

/** Makes a token with the private key of a file (PEM, PKCS#8), and removes the file. */
export const makeToken = (folder: string, keyFile: string): TokenPlace => {
  const at = (name: string) => join(folder, name)
  const env = { SOFTHSM2_CONF: at("softhsm2.conf") }
  const softhsm = (...words: ReadonlyArray<string>) => {
    const { error, status, stderr } = spawnSync("softhsm2-util", words, {
      env: { ...process.env, ...env },
      encoding: "utf8"
    })
    if (status !== 0) throw new Error(`softhsm2-util, of Debian's softhsm2: ${error?.message ?? stderr}`)
  }
  const writePin = (pin: string) => writeFileSync(at("pin"), `${pin}\n`, { mode: 0o600 })
  mkdirSync(at("tokens"), { recursive: true })
  writeFileSync(at("softhsm2.conf"), `directories.tokendir = ${at("tokens")}\nlog.level = ERROR\n`)
  softhsm("--init-token", "--free", "--label", "ca", "--pin", rightPin, "--so-pin", "5678")
  softhsm("--import", keyFile, "--token", "ca", "--label", "ca-key", "--id", "a1", "--pin", rightPin)
  unlinkSync(keyFile)
  writePin(rightPin)
  return {
    env,
    toml: `module_path = "${softhsmModule}"\ntoken_label = "ca"\nkey_label = "ca-key"\npin_file = "${at("pin")}"\n`,
    writePin,
    move: (where) => {
      const [here, away] = [at("tokens"), at("tokens-away")]
      renameSync(where === "away" ? here : away, where === "away" ? away : here)
    }
  }
}

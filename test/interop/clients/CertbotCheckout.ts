import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import type { Client } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { certbotOf } from "./Certbot.ts"

/** A release of certbot that Debian does not have and that runs from a checkout of its source. */
export interface CertbotCheckout {
  /** The client, which works only after {@link CertbotCheckout.prepare}. */
  readonly client: Client
  /** Prepares certbot for the run, and returns the name that certbot gives to its version. */
  readonly prepare: () => Promise<string>
  readonly dispose: () => void
}

const parts = ["acme", "certbot"] as const

/** Debian's Python, with the packages that its certbot installs. */
const python = "/usr/bin/python3"

const start = "import sys; from certbot.main import main; sys.exit(main())"

// Files that Python and earlier runs have left are not copied.
const isSource = (path: string): boolean => !/^(?:\.git|__pycache__|.*\.egg-info|venv.*)$/.test(basename(path))

/** Returns the folder of the modules of a part, which is one folder deeper in newer releases. */
const modulesOf = (part: string): string => existsSync(join(part, "src")) ? join(part, "src") : part

const versionIn = (folder: string): string => {
  const file = join(modulesOf(join(folder, "certbot")), "certbot/__init__.py")
  const version = existsSync(file)
    ? /^__version__ = ['"]([\w.]+)['"]$/m.exec(readFileSync(file, "utf8"))?.[1]
    : undefined
  if (version === undefined) throw new Error(`${folder} is no checkout of certbot: ${file} does not name a version`)
  return version
}

/**
 * Returns the certbot of a checkout. certbot runs from a copy, so that nothing is installed or changed in the checkout.
 */
export const certbotAt = (checkout: string): CertbotCheckout => {
  const folder = resolve(checkout)
  const version = versionIn(folder)
  const copy = mkdtempSync(join(tmpdir(), "acme-certbot-checkout-"))
  const path = parts.map((part) => modulesOf(join(folder, part)).replace(folder, copy)).join(":")
  const program = ["env", `PYTHONPATH=${path}`, "PYTHONWARNINGS=ignore", python, "-c", start] as const
  return {
    client: {
      ...certbotOf(`certbot ${version}`, program),
      // Releases of certbot before 2.0 import packages on which Debian's certbot does not depend.
      commands: ["certbot", "python3-requests-toolbelt", "python3-setuptools", "python3-zope.component"]
    },
    prepare: async () => {
      for (const part of parts) {
        const cwd = join(copy, part)
        cpSync(join(folder, part), cwd, { recursive: true, filter: isSource })
        // certbot finds its own plugins through this file.
        await runCommand(python, ["setup.py", "--quiet", "egg_info"], { cwd })
      }
      const [command, ...words] = program
      return (await runCommand(command, [...words, "--version"])).trim()
    },
    dispose: () => rmSync(copy, { recursive: true, force: true })
  }
}

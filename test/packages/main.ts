import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { endWith, tellOutcomes } from "../interop/Closing.ts"
import { runCommand } from "../interop/Command.ts"
import { install as installCommands } from "../interop/Packages.ts"
import { inParallel } from "../support/InParallel.ts"
import { compose } from "./Compose.ts"
import { container } from "./Container.ts"
import { debian } from "./Debian.ts"
import type { Installation } from "./Installation.ts"
import { install } from "./Installation.ts"
import { kubernetes } from "./Kubernetes.ts"
import { nixos } from "./Nix.ts"
import { npm } from "./Npm.ts"
import { recovery } from "./Recovery.ts"
import { sbom } from "./Sbom.ts"

/*
 * `npm run packages` tests the service as users get it: makes each package, installs it without access to this clone,
 * and uses it to get a certificate. Arguments select packages by a part of their names. `--help` explains the rest.
 */

/** The installations, beginning with those that take the longest. */
const installations: ReadonlyArray<Installation> = [container, debian, npm, recovery, kubernetes, compose, nixos, sbom]

/** The number of installations that run at a time. */
const width = 2

const repository = resolve(import.meta.dirname, "../..")

const usage = `Usage: npm run packages -- [part of a name ...]

Without a part of a name, everything is played: ${installations.map(({ name }) => name).join(", ")}.

  --help
`

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** Runs `use` with the published package, which `npm pack` builds by the script `prepare`. */
const packed = async <A>(use: (tarball: string) => Promise<A>): Promise<A> => {
  const directory = mkdtempSync(join(tmpdir(), "acme-packed-"))
  try {
    await runCommand("npm", ["pack", "--pack-destination", directory], { cwd: repository })
    const [tarball, ...others] = readdirSync(directory)
    if (tarball === undefined || others.length > 0) throw new Error(`npm pack made ${readdirSync(directory).join(" ")}`)
    return await use(join(directory, tarball))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const main = async (words: ReadonlyArray<string>): Promise<boolean> => {
  const { positionals: parts, values: { help } } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: { help: { type: "boolean", default: false } }
  })
  if (help) {
    process.stdout.write(usage)
    return true
  }
  const chosen = installations.filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)))
  await installCommands(chosen.flatMap(({ commands }) => commands), say)
  const outcomes = await packed(async (tarball) =>
    (await inParallel(chosen, width, (installation) => install(installation, { tarball, say }))).flat()
  )
  return tellOutcomes(outcomes, ["SQLite"])
}

await endWith(main(process.argv.slice(2)))

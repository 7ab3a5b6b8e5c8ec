import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { bindingOf } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { isKept, kept, keptIn, once, registryEnvironment } from "../Kept.ts"
import { alpnCertificatesOf, responding, tokensOf } from "../Responders.ts"
import { lacksCompiled } from "../Toolchains.ts"

/* Libraries of crates.io, with a small program for each. Cargo.lock has the digest of every crate. */

const source = join(import.meta.dirname, "rust")

const manifest = readFileSync(join(source, "Cargo.toml"), "utf8")

/** The version that the newest of the crates needs. */
const cargoVersion = "1.89"

const programs = ["acme2", "instant-acme", "lers"] as const

type Program = typeof programs[number]

const sources = ["Cargo.toml", "Cargo.lock", "src/lib.rs", ...programs.map((program) => `src/bin/${program}.rs`)]

const madeOf = sources.map((file) => readFileSync(join(source, file), "utf8"))

const build = once(() =>
  kept("rust", madeOf, async (folder) => {
    // Cargo's folder is kept as well, so that the crates need not be compiled again after a change of one program.
    const target = join(keptIn(), "rust-target")
    const words = ["build", "--release", "--locked", "--quiet", "--manifest-path", join(source, "Cargo.toml")]
    const env = { ...registryEnvironment(), CARGO_TARGET_DIR: target }
    await runCommand("cargo", words, { env, timeoutMs: 1_800_000 })
    for (const program of programs) copyFileSync(join(target, "release", program), join(folder, program))
  })
)

const run = async (program: Program, at: Workplace, step: string, ...words: ReadonlyArray<string>) => {
  const { directoryUrl, home, trust } = at
  const all = [home, directoryUrl, trust, step, ...words]
  return runCommand(join(await build(), program), all, { cwd: home, env: { HOME: home, ...bindingOf(at) } })
}

/** Returns where the program leaves the answers to challenges, for separate servers. */
const placeOf = (at: Workplace): string =>
  ({ "http-01": tokensOf(at), "dns-01": at.nameServer.script, "tls-alpn-01": alpnCertificatesOf(at) })[at.challenge]

/** Runs the program with separate servers that answer the challenges. */
const besides = (program: Program, step: string) => async (at: Workplace, names: Names) => {
  await build()
  return responding(at, () => run(program, at, step, at.challenge, placeOf(at), ...names))
}

/** Orders with the library's own server for http-01, and with separate servers for the other challenges. */
const byItself = (program: Program, step: string) => (at: Workplace, names: Names) =>
  at.challenge === "http-01"
    ? run(program, at, step, at.challenge, `${at.httpPort}`, ...names)
    : besides(program, step)(at, names)

const clientOf = (program: Program) => ({
  name: program,
  pinned: {
    package: `${program} of crates.io`,
    version: new RegExp(`^${program} = .*?=([\\d.]+)"`, "m").exec(manifest)?.[1] ?? ""
  },
  lacks: () => lacksCompiled(isKept("rust", madeOf), "cargo", cargoVersion),
  chain: (at: Workplace, [name]: Names) => readFileSync(join(at.home, `${name.replace("*", "_")}.pem`), "utf8")
})

// Two of these programs use OpenSSL.
const commands = ["gcc", "libssl-dev", "pkg-config"]

/** A program that changes its account key, which is P-256, and requests renewal information. */
export const instantAcme: Client = {
  ...clientOf("instant-acme"),
  commands,
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: besides("instant-acme", "issue"),
  renew: besides("instant-acme", "issue"),
  renewWhenTold: besides("instant-acme", "renew-when-told"),
  binds: true,
  updateContact: (at) => run("instant-acme", at, "contact"),
  rollover: (at) => run("instant-acme", at, "rollover"),
  revoke: (at, [name]) => run("instant-acme", at, "revoke", name),
  deactivate: (at) => run("instant-acme", at, "deactivate")
}

/** A program that answers http-01 itself, has an RSA account key, and writes null for members without a value. */
export const lers: Client = {
  ...clientOf("lers"),
  commands,
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: byItself("lers", "issue"),
  renew: byItself("lers", "renew"),
  binds: true,
  revoke: (at, [name]) => run("lers", at, "revoke", name),
  revokeByItsKey: (at, [name]) => run("lers", at, "revoke-by-its-key", name)
}

/** A program that only orders, has an RSA account key, and writes null for members without a value. */
export const acme2: Client = {
  ...clientOf("acme2"),
  commands,
  challenges: ["http-01", "dns-01"],
  issue: besides("acme2", "issue"),
  renew: besides("acme2", "issue")
}

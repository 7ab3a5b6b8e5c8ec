import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Client, Names, Workplace } from "../Client.ts"
import { bindingOf } from "../Client.ts"
import { runCommand } from "../Command.ts"
import { isKept, kept, once, registryEnvironment } from "../Kept.ts"
import { alpnCertificatesOf, responding, tokensOf } from "../Responders.ts"
import { lacksCompiled } from "../Toolchains.ts"

const [pom, program] = ["pom.xml", "Acme4jProgram.java"].map((file) => join(import.meta.dirname, "java", file)) as [
  string,
  string
]

const libraries = readFileSync(pom, "utf8")

const madeOf = [libraries, readFileSync(program, "utf8")]

/** The version that acme4j needs. */
const javaVersion = "17"

const build = once(() =>
  kept("java", madeOf, async (folder) => {
    const options = { env: registryEnvironment(), timeoutMs: 900_000 }
    const copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
    await runCommand("mvn", ["-q", "-B", "-f", pom, copy, `-DoutputDirectory=${folder}`], options)
    await runCommand("javac", ["-cp", join(folder, "*"), "-d", folder, program], options)
  })
)

const run = async (at: Workplace, step: string, ...words: ReadonlyArray<string>) => {
  const { directoryUrl, home, trust } = at
  const made = await build()
  const all = ["-cp", `${made}:${join(made, "*")}`, "Acme4jProgram", home, directoryUrl, trust, step, ...words]
  return runCommand("java", all, { cwd: home, env: { HOME: home, ...bindingOf(at) } })
}

/** Returns where the program leaves the answers to challenges, for separate servers. */
const placeOf = (at: Workplace): string =>
  ({ "http-01": tokensOf(at), "dns-01": at.nameServer.script, "tls-alpn-01": alpnCertificatesOf(at) })[at.challenge]

const order = (step: string) => async (at: Workplace, names: Names) => {
  await build()
  return responding(at, () => run(at, step, at.challenge, placeOf(at), ...names))
}

/** A program that has a P-256 account key, changes it to RSA, and requests renewal information. */
export const acme4j: Client = {
  name: "acme4j",
  commands: ["javac", "mvn"],
  pinned: {
    package: "org.shredzone.acme4j:acme4j-client of Maven Central",
    version: /acme4j-client<\/artifactId>\s*<version>([\d.]+)/.exec(libraries)?.[1] ?? ""
  },
  lacks: () => lacksCompiled(isKept("java", madeOf), "javac", javaVersion),
  challenges: ["http-01", "dns-01", "tls-alpn-01"],
  issue: order("issue"),
  renew: order("issue"),
  renewWhenTold: order("renew-when-told"),
  chain: (at, [name]) => readFileSync(join(at.home, `${name.replace("*", "_")}.pem`), "utf8"),
  binds: true,
  updateContact: (at) => run(at, "contact"),
  rollover: (at) => run(at, "rollover"),
  revoke: (at, [name]) => run(at, "revoke", name),
  revokeByItsKey: (at, [name]) => run(at, "revoke-by-its-key", name),
  deactivate: (at) => run(at, "deactivate")
}

import { runCommand } from "./Command.ts"

/** Debian's package of every program that is not called like its package. */
const packages: Readonly<Record<string, string>> = {
  apache2: "apache2-bin",
  named: "bind9",
  nsupdate: "bind9-dnsutils",
  ualpn: "uacme"
}

const exists = (command: string): Promise<boolean> =>
  runCommand("sh", ["-c", "command -v \"$0\"", command]).then(() => true, () => false)

/** Installs what is missing with apt-get; fails with the names of what cannot be had. */
export const install = async (commands: ReadonlyArray<string>, say: (text: string) => void): Promise<void> => {
  const missing = new Set<string>()
  for (const command of commands) {
    if (!await exists(command)) missing.add(packages[command] ?? command)
  }
  if (missing.size === 0) return
  const wanted = [...missing].join(" ")
  if (process.getuid?.() !== 0 || !await exists("apt-get")) {
    throw new Error(`not installed: ${wanted}. Install them, or run this as root where there is apt-get.`)
  }
  say(`installing ${wanted} with apt-get`)
  const env = { DEBIAN_FRONTEND: "noninteractive" }
  try {
    await runCommand("apt-get", ["update"], { env, timeoutMs: 300_000 })
    const words = ["install", "--yes", "--no-install-recommends", ...missing]
    await runCommand("apt-get", words, { env, timeoutMs: 600_000 })
  } catch (error) {
    throw new Error(`apt-get could not install ${wanted}: ${String(error)}`, { cause: error })
  }
}

import { cleared, onTerminalIn, started, typedIn } from "./Clone.ts"
import { commandBelow, commandsBelow } from "./Page.ts"
import type { Way } from "./Way.ts"
import { expects } from "./Way.ts"

const page = "docs/start/ten-minutes.md"

/** From the clone to a certificate for this machine. */
export const firstCertificate: Way = {
  name: "clone to first certificate",
  before: "4 commands, 53 s",
  page,
  commands: ["certbot", "openssl"],
  beginsWithClone: true,
  go: async (steps, { clone, scratch }) => {
    cleared(clone)
    const [install = "", start = ""] = commandsBelow(page, "Start it")
    steps.typed(install)
    const serving = onTerminalIn(clone, scratch, steps.typed(start))
    await serving.shown(started)
    const asked = steps.typed(commandBelow(page, "A first certificate", "certbot "))
    expects(
      serving.screen().split("\n").map((line) => line.trim()).includes(asked),
      `the start does not print what the page has: ${asked}`
    )
    await typedIn(clone, scratch, asked)
    steps.said(
      await typedIn(
        clone,
        scratch,
        steps.typed(commandBelow(page, "A first certificate", "openssl verify -CAfile ca.pem demo-certbot"))
      )
    )
    expects(steps.last.endsWith(": OK"), steps.last)
    await serving.interrupt()
  }
}

import { parseArgs } from "node:util"
import { operators, startDemo } from "./Demo.ts"
import { stateNames, states } from "./States.ts"

/*
 * `npm run demo` starts an instance of the service on loopback and keeps it until Ctrl-C ends it. `--state` names the
 * state in which it begins. `PORT` is the port of the panel.
 */

const say = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

const { values } = parseArgs({ options: { state: { type: "string", default: "full" } } })
const state = stateNames.find((name) => name === values.state)
if (state === undefined) {
  say(`--state takes one of\n${stateNames.map((name) => `  ${name.padEnd(10)}${states[name].shows}`).join("\n")}`)
  process.exit(2)
}

const demo = await startDemo({
  state,
  ...(process.env["PORT"] === undefined ? {} : { adminPort: Number(process.env["PORT"]) }),
  tell: say
})

say(`
The panel is at ${demo.url}/ui/

  name    password                   role
${operators.map(({ password, role, username }) => `  ${username.padEnd(8)}${password.padEnd(27)}${role}`).join("\n")}

Its ACME endpoints: ${
  ["corp", "edge", "script", "public"].map((name) => `${demo.acmeUrl}/profile/${name}/directory`).join(
    "\n                    "
  )
}
Ctrl-C ends it and removes what it made.
`)

let isEnding = false
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (isEnding) return
    isEnding = true
    void demo.stop().then(() => process.exit(0))
  })
}

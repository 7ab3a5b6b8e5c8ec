import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { wordsOf } from "../../../engine/host/Scripts.ts"
import type { Comparable } from "../../../engine/net/Address.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import type { ScriptHost } from "../CustomScript.ts"
import { maxScriptOutput } from "../CustomScript.ts"
import type { Inventory } from "./Inventory.ts"
import { InventoryFailed } from "./Inventory.ts"

const hook = "names_for"
const noRecord = 3

/** Makes an inventory from an operator's program that prints one name per line. */
export const program = (ipam: ProfileConfig["ipam"], { scripts, turns }: ScriptHost): Inventory => ({
  placeOf: () => `the script ${ipam.custom.script_path}`,
  namesFor: Effect.fnUntraced(function*(client: Comparable) {
    const place = `the script ${ipam.custom.script_path}`
    const outcome = yield* Effect.mapError(
      scripts.run({
        path: ipam.custom.script_path,
        args: Redacted.value(ipam.custom.args),
        env: { ACME_IPAM_HOOK: hook, ACME_IPAM_CLIENT_IP: client.text },
        stdin: JSON.stringify({ hook, client_ip: client.text }),
        timeoutMillis: ipam.timeout_ms,
        maxOutputBytes: maxScriptOutput,
        turns
      }),
      // The look-up and the script have the same time limit. So a timeout of the script is reported as a timeout of the
      // look-up.
      ({ detail, reason }) =>
        new InventoryFailed({
          detail: reason === "timeout"
            ? `${place}: no answer within ${ipam.timeout_ms} ms (ipam.timeout_ms)`
            : `${place} ${detail}`
        })
    )
    const { exit, stderr, stdout } = outcome
    if (exit === noRecord) return undefined
    if (exit !== 0) {
      // Standard output contains the names, so standard error is searched first for the reason.
      const words = wordsOf({ exit, stdout: stderr, stderr: stdout })
      const said = words === undefined ? "" : `: ${words}`
      return yield* new InventoryFailed({ detail: `${place} ended with ${exit}${said}` })
    }
    // The output was cut off, perhaps within a name. The part of such a name that is left may look like another name.
    if (stdout.length >= maxScriptOutput) return yield* new InventoryFailed({ detail: `${place} printed too much` })
    return stdout.toString("utf8").split(/\r?\n/).filter((line) => line.trim() !== "")
  })
})

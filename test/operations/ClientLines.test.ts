import { Issuer } from "@kubernetes-models/cert-manager/cert-manager.io/v1"
import { execFileSync } from "node:child_process"
import { assert, describe, it } from "vitest"
import { parseAllDocuments } from "yaml"
import type { Pasted } from "../../src/operations/ClientLines.ts"
import { clientLines } from "../../src/operations/ClientLines.ts"

/* `npm run interop` pastes these texts for the clients themselves (`test/interop/credentials`). */

const directory = "https://acme.example.org/profile/default/directory"
const bound = (kid: string): Pasted => ({
  directory,
  credential: { kid, hmacKey: "KEY" },
  names: ["**.shop.example", "shop.example"]
})
const plain = bound("0190-ab")

/** Identifiers that another server may have given to a credential. */
const kids = ["-begins-with-a-hyphen", "two words", "$(id) `id` \\", "it's", "\"quoted\"", "a:b #c", "{}", "żółw"]

const textFor = (pasted: Pasted, client: string): string =>
  clientLines(pasted).find((one) => one.client === client)?.text ?? assert.fail(client)

/** Returns the words that a shell makes of a line. */
const wordsOf = (line: string): ReadonlyArray<string> =>
  execFileSync("sh", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" }).trimEnd().split("\n")

/** Returns the value of an option among the words of a line. */
const valueOf = (words: ReadonlyArray<string>, option: string): string | undefined =>
  words.find((word) => word.startsWith(`${option}=`))?.slice(option.length + 1) ?? words[words.indexOf(option) + 1]

describe("the lines for clients", () => {
  it("are whole commands", () => {
    const eab = "--eab-kid 0190-ab --eab-hmac-key KEY"
    assert.deepStrictEqual(
      ["certbot", "lego", "acme.sh"].map((client) => textFor(plain, client)),
      [
        `certbot certonly --server ${directory} ${eab} -d host.shop.example`,
        `lego --server ${directory} --accept-tos --email you@example.org --eab --kid 0190-ab --hmac KEY --http --domains host.shop.example run`,
        `acme.sh --register-account --server ${directory} ${eab}`
      ]
    )
    assert.include(textFor({ ...plain, names: ["shop.example"] }, "certbot"), " -d shop.example")
    assert.include(textFor({ ...plain, names: ["*.shop.example"] }, "certbot"), " -d host.shop.example")
    assert.include(textFor({ ...plain, names: undefined }, "certbot"), " -d host.example.org")
  })

  it.each(kids)("keep the kid of another server through a shell: %s", (kid) => {
    for (const [client, option] of [["certbot", "--eab-kid"], ["lego", "--kid"], ["acme.sh", "--eab-kid"]] as const) {
      const words = wordsOf(textFor(bound(kid), client))
      assert.strictEqual(valueOf(words, option), kid)
      assert.strictEqual(valueOf(words, "--server"), directory)
    }
  })

  it.each(["0190-ab", ...kids])("make a manifest that fits the schema of cert-manager: %s", (kid) => {
    const [secret, issuer, ...rest] = parseAllDocuments(textFor(bound(kid), "cert-manager")).map((document) =>
      document.toJS()
    )
    assert.deepStrictEqual(rest, [])
    assert.deepInclude(secret, { kind: "Secret", apiVersion: "v1", stringData: { "hmac-key": "KEY" } })
    new Issuer(issuer).validate()
    const { externalAccountBinding, server } = issuer.spec.acme
    assert.deepStrictEqual({ externalAccountBinding, server }, {
      externalAccountBinding: { keyID: kid, keySecretRef: { name: secret.metadata.name, key: "hmac-key" } },
      server: directory
    })
  })

  it("begin a Caddyfile", () => {
    assert.strictEqual(
      textFor(plain, "Caddy"),
      `{\n  acme_ca ${directory}\n  acme_eab {\n    key_id 0190-ab\n    mac_key KEY\n  }\n}`
    )
    assert.include(textFor(bound("two \"words\""), "Caddy"), "key_id `two \"words\"`")
    assert.include(textFor(bound("a ` and \""), "Caddy"), "key_id \"a ` and \\\"\"")
  })

  it("have no credential if the profile requires none", () => {
    const open: Pasted = { directory, credential: undefined, names: undefined }
    assert.deepStrictEqual(
      ["certbot", "lego", "acme.sh", "Caddy"].map((client) => textFor(open, client)),
      [
        `certbot certonly --server ${directory} -d host.example.org`,
        `lego --server ${directory} --accept-tos --email you@example.org --http --domains host.example.org run`,
        `acme.sh --register-account --server ${directory}`,
        `{\n  acme_ca ${directory}\n}`
      ]
    )
    const [issuer, ...rest] = parseAllDocuments(textFor(open, "cert-manager")).map((document) => document.toJS())
    assert.deepStrictEqual(rest, [])
    new Issuer(issuer).validate()
    assert.deepStrictEqual(Object.keys(issuer.spec.acme), ["server", "privateKeySecretRef", "solvers"])
  })
})

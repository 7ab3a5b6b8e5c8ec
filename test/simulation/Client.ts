import { Effect } from "effect"
import { X509Certificate } from "node:crypto"
import type { Answer } from "../../src/engine/http/Message.ts"
import type { AcmeKey, AuthorizationBody, OrderBody } from "../support/AcmeSession.ts"
import { makeCsr } from "../support/Csr.ts"
import { signed, urlOf } from "../support/Handle.ts"
import { permitsKind, permitsNames } from "./Grants.ts"
import { accountKeyNamed } from "./Keys.ts"
import { idOf, jsonOf, pathOf, patience, Session } from "./Session.ts"

const hosts = ["a", "b", "c", "d", "e"].map((letter) => `${letter}.example.org`)
/** What a client that was bound with a credential may order besides. */
const furtherNames = ["f.deep.example.org", "g.deeper.deep.example.org", "*.deep.example.org", "*.example.org"]
/** How often a client sends a finalize again that its credential does not permit, in the hope for a change. */
const hopes = 2
const serialOf = (certificate: X509Certificate): string => certificate.serialNumber.toLowerCase().replace(/^0+/, "")

/** Returns whether an answer says that the credential of the account does not permit the order. */
const isOutside = ({ body, status }: Answer): boolean =>
  status >= 400 && /:(?:rejectedIdentifier|compound|invalidProfile)"/.test(String(body))

/** A client that orders, proves, finalizes and revokes. Sometimes the client does something that is not allowed. */
export class Client extends Session {
  readonly #certificates: Array<{ readonly order: string; readonly der: Buffer; readonly key: AcmeKey }> = []

  readonly #prove = (authorizationUrl: string) =>
    Effect.gen({ self: this }, function*() {
      const { mischief, random, world } = this.at
      const answer = yield* this.post(pathOf(authorizationUrl), undefined)
      if (answer?.status !== 200) return
      const { challenges, identifier, status } = jsonOf<AuthorizationBody>(answer)
      // A challenge of a name that the credential proves is shown as valid. A request for it changes nothing.
      const [shown] = challenges
      if (status === "valid" && shown !== undefined && random.chance(mischief)) yield* this.post(pathOf(shown.url), {})
      if (status !== "pending") return
      const chosen = random.chance(mischief) ? challenges : [random.pick(challenges)]
      for (const { token, type, url } of chosen) {
        const isRight = !random.chance(mischief)
        const right = `${token}.${this.key.thumbprint}`
        if (isRight || random.chance(0.5)) {
          const keyAuthorization = isRight ? right : `${token}.${this.nextKey().thumbprint}`
          world.provide(type, token, { name: identifier.value, keyAuthorization, isRight })
        }
        yield* this.post(pathOf(url), {})
      }
      if (random.chance(mischief / 2)) yield* this.post(pathOf(authorizationUrl), { status: "deactivated" })
    })

  readonly #until = (orderUrl: string, statuses: ReadonlyArray<string>) =>
    Effect.gen({ self: this }, function*() {
      for (let tries = 0; tries < patience; tries++) {
        const answer = yield* this.post(pathOf(orderUrl), undefined)
        if (answer?.status !== 200) return undefined
        const order = jsonOf<OrderBody>(answer)
        if (statuses.includes(order.status)) return order
        yield* this.pause(200, 4000)
      }
      return undefined
    })

  /** Returns names and a kind, which the credential of the account often permits. */
  #wanted(): { readonly names: ReadonlyArray<string>; readonly kind: string | undefined } {
    const { grants, kinds, random } = this.at
    const grant = grants.ofAccount(idOf(this.kid ?? ""))
    const isObedient = grant !== undefined && random.chance(0.7)
    const among = (grant === undefined ? hosts : [...hosts, ...furtherNames])
      .filter((name) => !isObedient || permitsNames(grant, [name]))
    const names = among.filter(() => random.chance(0.3))
    if (names.length === 0) names.push(random.pick(among.length === 0 ? hosts : among))
    const offered = kinds.filter((kind) => !isObedient || permitsKind(grant, kind))
    return { names, kind: offered.length === 0 || random.chance(0.5) ? undefined : random.pick(offered) }
  }

  readonly #order = Effect.gen({ self: this }, function*() {
    const { ledger, mischief, random } = this.at
    const { kind, names } = this.#wanted()
    const answer = yield* this.order(this.target("/newOrder"), {
      identifiers: names.map((value) => ({ type: "dns", value })),
      ...kind === undefined ? {} : { profile: kind }
    }, { names, kind })
    const url = answer?.headers["location"]
    if (answer?.status !== 201 || typeof url !== "string") return
    const id = idOf(url)
    ledger.orders.set(id, names)
    const { authorizations, finalize } = jsonOf<OrderBody>(answer)
    yield* Effect.forEach(authorizations, this.#prove, { concurrency: 2 })
    if (random.chance(mischief / 2)) return
    const proved = yield* this.#until(url, ["ready", "invalid"])
    if (proved?.status !== "ready") return
    if (random.chance(mischief / 2)) yield* this.post(pathOf(random.pick(authorizations)), { status: "deactivated" })
    // The operator may change the credential in the meantime.
    if (this.at.operator !== undefined && random.chance(0.5)) yield* this.pause(0, 8000)

    const keys = [accountKeyNamed(`leaf/${random.below(40)}`), accountKeyNamed(`leaf/${random.below(40)}`)]
    const ask = (key: AcmeKey) =>
      Effect.gen({ self: this }, function*() {
        for (let tries = 0; tries <= hopes; tries++) {
          const csr = makeCsr({ names, key: key.privateKey }).csr.toString("base64url")
          const answer = yield* this.order(pathOf(finalize), { csr }, { names, kind }, id)
          if (answer?.status === 200) {
            if (ledger.finalized.has(id)) this.at.violated(`the order ${id} was finalized twice`)
            ledger.finalized.add(id)
          }
          if (answer === undefined || !isOutside(answer)) return true
          yield* this.pause(0, 5000)
        }
        return false
      })
    const asking = random.chance(mischief * 2) ? keys : keys.slice(0, 1)
    // A client may withdraw an authorization of the names while the certificate is being signed.
    const withdrawing = random.chance(mischief)
      ? Effect.andThen(this.pause(0, 20), this.post(pathOf(random.pick(authorizations)), { status: "deactivated" }))
      : Effect.void
    const [mayEnd] = yield* Effect.all([Effect.forEach(asking, ask, { concurrency: 2 }), withdrawing], {
      concurrency: 2
    })
    if (!mayEnd.includes(true) || random.chance(mischief / 2)) return
    const ended = yield* this.#until(url, ["valid", "invalid"])
    if (ended?.certificate === undefined) return
    const handed = yield* this.post(pathOf(ended.certificate), undefined)
    if (handed?.status === 200) this.#receive(id, names, keys, String(handed.body))
  })

  #receive(id: string, names: ReadonlyArray<string>, keys: ReadonlyArray<AcmeKey>, chain: string): void {
    const { authorities, ledger, violated } = this.at
    const leaf = new X509Certificate(chain)
    const serial = serialOf(leaf)
    const known = ledger.certificates.get(id)
    if (known !== undefined && known !== serial) violated(`the order ${id} has the certificates ${known} and ${serial}`)
    ledger.certificates.set(id, serial)
    if (leaf.subjectAltName?.split(", ").toSorted().join() !== names.map((name) => `DNS:${name}`).toSorted().join()) {
      violated(`the certificate of the order ${id} is for ${leaf.subjectAltName}, not for ${names.join()}`)
    }
    if (!authorities.hasSigned(leaf)) violated(`the certificate of the order ${id} does not verify`)
    const key = keys.find(({ privateKey }) => leaf.checkPrivateKey(privateKey))
    if (key === undefined) violated(`the certificate of the order ${id} is for a foreign key`)
    else this.#certificates.push({ order: id, der: leaf.raw, key })
  }

  readonly #revoke = Effect.gen({ self: this }, function*() {
    const { ledger, random } = this.at
    if (this.#certificates.length === 0) return
    const { der, key } = random.pick(this.#certificates)
    const serial = serialOf(new X509Certificate(der))
    const revoke = (by: { readonly key: AcmeKey; readonly kid: string | undefined } | undefined) => {
      const payload = { certificate: der.toString("base64url"), ...(random.chance(0.5) ? { reason: 4 } : {}) }
      return Effect.map(this.post(this.target("/revokeCert"), payload, by), (answer) => {
        if (answer?.status !== 200) return
        if (ledger.revoked.has(serial)) this.at.violated(`the certificate ${serial} was revoked twice`)
        ledger.revoked.add(serial)
      })
    }
    const both = [undefined, { key, kid: undefined }]
    yield* Effect.forEach(both.slice(...random.pick([[0, 2], [0, 1], [1, 2]] as const)), revoke, { concurrency: 2 })
  })

  private readonly rollKey = Effect.gen({ self: this }, function*() {
    const [before, after] = [this.key, this.nextKey()]
    const path = this.target("/keyChange")
    const inner = signed(after, { jwk: after.jwk, url: urlOf(path) }, { account: this.kid, oldKey: before.jwk })
    const answer = yield* this.post(path, JSON.parse(inner) as object)
    // If there was no answer, either key may be valid. The client tries the new key, and keeps it if the account has
    // that key.
    const probe = yield* this.post(this.target("/newAccount"), { onlyReturnExisting: true }, {
      key: after,
      kid: undefined
    })
    if (probe?.status === 200) this.key = after
    else if (answer?.status === 200 && probe !== undefined) {
      this.at.violated("a key change that was answered is undone")
    }
    if (answer?.status !== 200 || probe?.status !== 200) return
    const old = yield* this.post(this.target("/newAccount"), { onlyReturnExisting: true }, {
      key: before,
      kid: undefined
    })
    if (old?.status === 200) this.at.violated("the key an account had before is still its key")
  })

  private readonly deactivate = Effect.gen({ self: this }, function*() {
    const kid = this.kid ?? ""
    const answer = yield* this.post(pathOf(kid), { status: "deactivated" })
    if (answer?.status === 200) this.at.ledger.deactivated.add(idOf(kid))
    yield* this.post(this.target("/newOrder"), { identifiers: [{ type: "dns", value: hosts[0] }] })
    yield* this.post(pathOf(kid), undefined)
  })

  /** The whole run of a client: some orders, with random other requests between them. */
  readonly life: Effect.Effect<void> = Effect.gen({ self: this }, function*() {
    const { random } = this.at
    if (!(yield* this.register)) return
    const errands = random.between(2, 6)
    for (let done = 0; done < errands; done++) {
      // An account that may order nothing any more is given up.
      if (this.at.grants.ofAccount(idOf(this.kid ?? ""))?.names?.length === 0 && random.chance(0.8)) {
        this.key = this.nextKey()
        if (!(yield* this.register)) return
      }
      if (random.chance(0.2)) {
        yield* Effect.all([this.#order, random.chance(0.5) ? this.#order : this.#revoke], { concurrency: 2 })
      } else yield* this.#order
      if (random.chance(0.5)) yield* this.#revoke
      if (random.chance(0.15)) yield* this.rollKey
      yield* this.pause(0, 3000)
    }
    if (random.chance(0.2)) yield* this.deactivate
  })
}

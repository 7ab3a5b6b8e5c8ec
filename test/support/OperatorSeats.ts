import { request } from "node:http"
import { text } from "node:stream/consumers"
import { sessionCookie } from "../../src/surfaces/operator/gate/Credentials.ts"

/*
 * The acts of operators on themselves and on others, over the API and in the panel. Each surface has requests of its
 * own, over sockets.
 */

/** An answer that was read to its end. */
interface Answer {
  readonly status: number
  readonly text: string
  readonly cookie: string | undefined
}

/** A session, with the address from which it is used. */
export interface Seat {
  readonly from: string
  readonly cookie: string
  readonly csrf: string
}

type Send = (seat: Partial<Seat>, body?: object, parameters?: Readonly<Record<string, string>>) => Promise<Answer>

/** One surface, with the route of each act. */
export interface OperatorSurface {
  readonly name: "API" | "panel"
  /** The route of an act, as the surface declares it. */
  readonly routes: Readonly<Record<Act, string>>
  /** Signs in with only the password. */
  readonly signIn: (username: string, password: string, from: string) => Promise<Seat>
  /** Sends the second factor, and returns the whole session. */
  readonly verify: (seat: Seat, code: string) => Promise<Seat>
  /** Begins an enrolment, and returns the key of the authenticator. */
  readonly begin: (seat: Seat, password: string) => Promise<string>
  /** Completes the enrolment, and returns the recovery codes. */
  readonly confirm: (seat: Seat, code: string) => Promise<ReadonlyArray<string>>
  /** Does the same as `begin` in a sign-in that demands an enrolment. */
  readonly forcedBegin: (seat: Seat) => Promise<string>
  readonly forcedConfirm: (seat: Seat, code: string) => Promise<void>
  readonly codes: (seat: Seat, password: string) => Promise<ReadonlyArray<string>>
  readonly disable: (seat: Seat, password: string) => Promise<void>
  readonly password: (seat: Seat, current: string, next: string) => Promise<void>
  readonly contact: (seat: Seat, password: string, contact: string) => Promise<void>
  readonly contactOf: (seat: Seat, password: string, username: string, contact: string) => Promise<void>
  readonly resetOf: (seat: Seat, password: string, username: string) => Promise<void>
  readonly deactivate: (seat: Seat, accountId: string) => Promise<void>
  readonly block: (seat: Seat, accountId: string, reason: string) => Promise<void>
  readonly unblock: (seat: Seat, accountId: string) => Promise<void>
  readonly deleteCredential: (seat: Seat, kid: string) => Promise<void>
  readonly revoke: (seat: Seat, orderId: string) => Promise<void>
  readonly revokeSerial: (seat: Seat, serial: string) => Promise<void>
  /** Calls the route of an act and returns the status, whatever it is. */
  readonly attempt: (
    act: "confirm" | "contact" | "forcedConfirm" | "signIn" | "verify",
    seat: Partial<Seat>,
    fields: Readonly<Record<string, string>>
  ) => Promise<number>
}

type Act = Exclude<keyof OperatorSurface, "attempt" | "begin" | "forcedBegin" | "name" | "routes">

const cookieOf = (header: ReadonlyArray<string> = []): string | undefined =>
  header.flatMap((line) => new RegExp(`^${sessionCookie}=([^;]+)`).exec(line)?.[1] ?? [])[0]

/** Makes a function that sends a request from an address of this host. */
const asking = (url: string, isForm: boolean) => (route: string): Send => async (seat, body, parameters = {}) => {
  const [method = "", pattern = ""] = route.split(" ")
  const path = pattern.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? "")
  const content = body === undefined ? "" : isForm ? new URLSearchParams({ ...body }).toString() : JSON.stringify(body)
  const headers = {
    "user-agent": "test \"1\"",
    ...content === "" ? {} : { "content-type": isForm ? "application/x-www-form-urlencoded" : "application/json" },
    "content-length": String(Buffer.byteLength(content)),
    ...seat.cookie === undefined ? {} : { cookie: `${sessionCookie}=${seat.cookie}` },
    ...seat.csrf === undefined ? {} : { "x-csrf-token": seat.csrf },
    ...isForm && seat.csrf !== undefined ? { "hx-request": "true" } : {}
  }
  return new Promise((done, fail) => {
    const asked = request(`${url}${path}`, { method, headers, localAddress: seat.from ?? "127.0.0.1", agent: false })
    asked.once("error", fail)
    asked.once("response", (answer) => {
      const { headers: given, statusCode: status = 0 } = answer
      text(answer).then((said) => done({ status, text: said, cookie: cookieOf(given["set-cookie"]) }), fail)
    })
    asked.end(content)
  })
}

const taken = (answer: Answer, what: string): Answer => {
  if (answer.status >= 400) throw new Error(`${what}: ${answer.status} ${answer.text.slice(0, 2000)}`)
  return answer
}

const jsonOf = (answer: Answer) =>
  JSON.parse(answer.text) as {
    readonly csrfToken: string
    readonly secret: string
    readonly recoveryCodes: ReadonlyArray<string>
  }

/** Returns the API. */
export const apiSurface = (url: string): OperatorSurface => {
  const to = asking(url, false)
  const routes = {
    signIn: "POST /api/session",
    verify: "POST /api/session/mfa",
    confirm: "POST /api/mfa/totp/confirm",
    forcedConfirm: "POST /api/session/mfa/totp/confirm",
    codes: "POST /api/mfa/recovery-codes",
    disable: "DELETE /api/mfa/totp",
    password: "POST /api/account/password",
    contact: "POST /api/account/contact",
    contactOf: "POST /api/operators/{username}/contact",
    resetOf: "POST /api/operators/{username}/totp/reset",
    deactivate: "POST /api/accounts/{id}/deactivate",
    block: "POST /api/accounts/{id}/block",
    unblock: "POST /api/accounts/{id}/unblock",
    deleteCredential: "DELETE /api/eab/{kid}",
    revoke: "POST /api/orders/{id}/revoke",
    revokeSerial: "POST /api/certificates/revoke"
  } as const
  const seated = (answer: Answer, from: string): Seat => ({
    from,
    cookie: answer.cookie ?? "",
    csrf: jsonOf(answer).csrfToken
  })
  const send = async (
    route: string,
    seat: Partial<Seat>,
    body?: object,
    parameters?: Readonly<Record<string, string>>
  ) => taken(await to(route)(seat, body, parameters), route)
  return {
    name: "API",
    routes,
    signIn: async (username, password, from) =>
      seated(await send(routes.signIn, { from }, { username, password }), from),
    verify: async (seat, code) => seated(await send(routes.verify, seat, { code }), seat.from),
    begin: async (seat, password) => jsonOf(await send("POST /api/mfa/totp", seat, { password })).secret,
    confirm: async (seat, code) => jsonOf(await send(routes.confirm, seat, { code })).recoveryCodes,
    forcedBegin: async (seat) => jsonOf(await send("POST /api/session/mfa/totp", seat)).secret,
    forcedConfirm: async (seat, code) => void await send(routes.forcedConfirm, seat, { code }),
    codes: async (seat, password) => jsonOf(await send(routes.codes, seat, { password })).recoveryCodes,
    disable: async (seat, password) => void await send(routes.disable, seat, { password }),
    password: async (seat, currentPassword, newPassword) =>
      void await send(routes.password, seat, { currentPassword, newPassword }),
    contact: async (seat, password, contact) => void await send(routes.contact, seat, { password, contact }),
    contactOf: async (seat, password, username, contact) =>
      void await send(routes.contactOf, seat, { password, contact }, { username }),
    resetOf: async (seat, password, username) => void await send(routes.resetOf, seat, { password }, { username }),
    deactivate: async (seat, id) => void await send(routes.deactivate, seat, undefined, { id }),
    block: async (seat, id, reason) => void await send(routes.block, seat, { reason }, { id }),
    unblock: async (seat, id) => void await send(routes.unblock, seat, undefined, { id }),
    deleteCredential: async (seat, kid) =>
      void await send(`${routes.deleteCredential}?accounts=deactivate`, seat, undefined, { kid }),
    revoke: async (seat, id) => void await send(routes.revoke, seat, { reason: 4 }, { id }),
    revokeSerial: async (seat, serial) => void await send(routes.revokeSerial, seat, { serials: [serial], reason: 4 }),
    attempt: async (act, seat, fields) => (await to(routes[act])(seat, fields)).status
  }
}

const keyIn = ({ text: page }: Answer): string =>
  /[?&]secret=([A-Z2-7]+)/.exec(page.replaceAll("&amp;", "&").replaceAll("&#x3d;", "="))?.[1] ?? ""

const codesIn = ({ text: page }: Answer): ReadonlyArray<string> =>
  [...page.matchAll(/<li>([A-Z2-7]{5}-[A-Z2-7]{5})/g)].map(([, one = ""]) => one)

/** Returns the panel, with requests as its forms send them. */
export const panelSurface = (url: string): OperatorSurface => {
  const to = asking(url, true)
  const routes = {
    signIn: "POST /ui/login",
    verify: "POST /ui/login/verify",
    confirm: "POST /ui/account/factor/confirm",
    forcedConfirm: "POST /ui/login/enrol/confirm",
    codes: "POST /ui/account/factor/codes",
    disable: "POST /ui/account/factor/disable",
    password: "POST /ui/account/password",
    contact: "POST /ui/account/contact",
    contactOf: "POST /ui/operators/{username}/contact",
    resetOf: "POST /ui/operators/{username}/reset-factor",
    deactivate: "POST /ui/accounts/{id}/deactivate",
    block: "POST /ui/accounts/{id}/block",
    unblock: "POST /ui/accounts/{id}/unblock",
    deleteCredential: "POST /ui/eab/{kid}/delete",
    revoke: "POST /ui/orders/{id}/revoke",
    revokeSerial: "POST /ui/certificates/revoke"
  } as const
  const send = async (
    route: string,
    seat: Partial<Seat>,
    body: object = {},
    parameters?: Readonly<Record<string, string>>
  ) => taken(await to(route)(seat, body, parameters), route)
  /**
   * Returns the seat of a session. A whole session finds its CSRF token in its pages, and a half session needs none.
   */
  const seated = async ({ cookie = "" }: Answer, from: string): Promise<Seat> => {
    const { text: page } = await to("GET /ui/")({ from, cookie })
    return { from, cookie, csrf: /X-CSRF-Token":"([\w-]+)"/.exec(page)?.[1] ?? "" }
  }
  return {
    name: "panel",
    routes,
    signIn: async (username, password, from) =>
      seated(await send(routes.signIn, { from }, { username, password }), from),
    verify: async (seat, code) => seated(await send(routes.verify, seat, { code }), seat.from),
    begin: async (seat, password) => keyIn(await send("POST /ui/account/factor/begin", seat, { password })),
    confirm: async (seat, code) => codesIn(await send(routes.confirm, seat, { code })),
    forcedBegin: async (seat) => keyIn(await send("POST /ui/login/enrol", seat)),
    forcedConfirm: async (seat, code) => void await send(routes.forcedConfirm, seat, { code }),
    codes: async (seat, password) => codesIn(await send(routes.codes, seat, { password })),
    disable: async (seat, password) => void await send(routes.disable, seat, { password }),
    password: async (seat, password, newPassword) =>
      void await send(routes.password, seat, { password, newPassword, repeated: newPassword }),
    contact: async (seat, password, contact) => void await send(routes.contact, seat, { password, contact }),
    contactOf: async (seat, password, username, contact) =>
      void await send(routes.contactOf, seat, { password, contact }, { username }),
    resetOf: async (seat, password, username) => void await send(routes.resetOf, seat, { password }, { username }),
    deactivate: async (seat, id) => void await send(routes.deactivate, seat, {}, { id }),
    block: async (seat, id, reason) => void await send(routes.block, seat, { reason }, { id }),
    unblock: async (seat, id) => void await send(routes.unblock, seat, {}, { id }),
    deleteCredential: async (seat, kid) =>
      void await send(routes.deleteCredential, seat, { accounts: "deactivate" }, { kid }),
    revoke: async (seat, id) => void await send(routes.revoke, seat, { reason: "4" }, { id }),
    revokeSerial: async (seat, serials) => void await send(routes.revokeSerial, seat, { serials, reason: "4" }),
    attempt: async (act, seat, fields) => (await to(routes[act])(seat, fields)).status
  }
}

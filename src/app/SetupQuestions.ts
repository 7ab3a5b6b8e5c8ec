import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { checkPassword } from "../domain/PasswordRules.ts"
import { readUsername, usernameForm } from "../domain/Username.ts"
import { addressOrCidr, baseUrl, bindAddress } from "../engine/config/ValueForm.ts"
import type { Form } from "../engine/config/ValueForm.ts"
import { readTextFile, said } from "../engine/host/KeyFile.ts"
import * as TlsFiles from "../engine/http/TlsFiles.ts"
import { isLoopbackHost } from "../engine/net/SocketAddress.ts"
import * as CaFiles from "../services/signing/CaFiles.ts"
import { resolveConfig } from "../settings/Resolve.ts"
import { databaseQuestions } from "./DatabaseQuestions.ts"
import { answerTo, itemsOf, unusable } from "./Dialogue.ts"
import type { Given, Question } from "./Dialogue.ts"
import { fromHere } from "./Here.ts"

/* The questions of `setup`: what each means, what Enter takes, and which answers can be used. */

const urlOf = ({ answers }: Given): URL => new URL(answers["url"] ?? "http://localhost")

/** Returns whether clients reach the service only from this machine. */
export const isLocal = (given: Given): boolean => {
  const { hostname } = urlOf(given)
  return hostname === "localhost" || hostname.endsWith(".localhost") || isLoopbackHost(hostname.replace(/^\[|\]$/g, ""))
}

const inForm = ({ fault }: Form) => (answer: string) => Effect.succeed(fault(answer))

/** Checks that a file is a text that this user can read. */
const readable = (path: string) =>
  Effect.flatMap(fromHere(path), (file) =>
    Effect.match(readTextFile(file), {
      onFailure: (error) => `cannot be used: ${file}: ${said(error)}`,
      onSuccess: () => undefined
    }))

const proxied = "127.0.0.1:3000"

const usualListen = (given: Given): string => {
  if (given.answers["tls"] === "proxy") return proxied
  const { port, protocol } = urlOf(given)
  const own = port === "" ? protocol === "https:" ? "443" : "80" : port
  return `${isLocal(given) ? "127.0.0.1" : "[::]"}:${own}`
}

const usualTls = (given: Given): string => urlOf(given).protocol === "https:" ? "generated" : "none"

/** Refuses a kind of TLS with which nobody could reach the URL. */
const tlsFault = (tls: string, given: Given): string | undefined => {
  const isHttps = urlOf(given).protocol === "https:"
  if (isHttps && tls === "none") {
    return "must not be none, because url begins with https: name a pair, generate one, or put a proxy in front"
  }
  return !isHttps && (tls === "own" || tls === "generated")
    ? `must not be ${tls}, because url begins with http: clients of that URL speak no TLS`
    : undefined
}

/** Checks a pair of the listener, with the words of a start. */
const pairFault = (keyPath: string, given: Given) =>
  Effect.gen(function*() {
    const unread = yield* readable(keyPath)
    if (unread !== undefined) return unread
    const settings = {
      listener: "acme",
      section: "tls",
      cert_path: yield* fromHere(answerTo(given, "tls_cert_path")),
      key_path: yield* fromHere(keyPath),
      host: urlOf(given).hostname
    }
    return yield* Effect.match(TlsFiles.check(settings), { onFailure: unusable, onSuccess: () => undefined })
  })

/** Checks an imported CA, with the words of a start. */
const caFault = (keyPath: string, given: Given) =>
  Effect.gen(function*() {
    const unread = yield* readable(keyPath)
    if (unread !== undefined) return unread
    const { signer } = Result.getOrThrow(
      resolveConfig({ fileText: "[profiles.default]\n", env: {} })
    ).config
    const passphrase = answerTo(given, "ca_passphrase_file")
    const settings = {
      ...signer.local_ca,
      section: "ca",
      cert_path: yield* fromHere(answerTo(given, "ca_cert_path")),
      key_path: yield* fromHere(keyPath),
      key_passphrase_file: passphrase === "" ? "" : yield* fromHere(passphrase)
    }
    return yield* Effect.match(CaFiles.check(settings), { onFailure: unusable, onSuccess: () => undefined })
  })

const usualNetworks = "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fd00::/8"

const addressesFault = (answer: string): string | undefined => {
  const items = itemsOf(answer)
  if (items.length === 0) return "must name at least one address"
  return items.map(addressOrCidr.fault).find((fault) => fault !== undefined)
}

const passwordFault = (password: string, given: Given): string | undefined => {
  if (password === "") return undefined
  const guessable = {
    username: answerTo(given, "operator"),
    texts: ["acme-svc", "ACME Service", "localhost", urlOf(given).hostname, "default"]
  }
  return Result.match(checkPassword(password, guessable), {
    onFailure: ({ why }) => `cannot be used: it ${why}`,
    onSuccess: () => undefined
  })
}

/** The questions of `setup`, in their order. */
export const setupQuestions: ReadonlyArray<Question> = [
  {
    name: "url",
    asks: "The URL under which clients reach the service; every signed request is compared with it.",
    usual: () => "http://localhost:3000",
    check: inForm(baseUrl)
  },
  {
    name: "tls",
    asks: "Who speaks TLS with clients.",
    words: [
      ["own", "the service, with a certificate and a key that you have"],
      ["generated", "the service, with a self-signed certificate that it makes and renews"],
      ["proxy", "a proxy in front of the service"],
      ["none", "nobody: clients use http"]
    ],
    usual: usualTls,
    check: (answer, given) => Effect.succeed(tlsFault(answer, given))
  },
  {
    name: "tls_cert_path",
    of: ["tls", "own"],
    asks: "The file with the certificate and its chain, as PEM.",
    usual: () => "server.pem",
    isNeeded: true,
    check: readable
  },
  {
    name: "tls_key_path",
    of: ["tls", "own"],
    asks: "The file with the key of that certificate, as PEM.",
    usual: () => "server.key",
    isNeeded: true,
    check: pairFault
  },
  {
    name: "proxies",
    kind: "list",
    of: ["tls", "proxy"],
    asks: "The addresses of the proxy, which may say in X-Forwarded-For who the client is.",
    usual: () => "127.0.0.1, ::1",
    check: (answer) => Effect.succeed(addressesFault(answer))
  },
  {
    name: "listen",
    asks: "The address and port on which the service itself listens.",
    usual: usualListen,
    check: inForm(bindAddress)
  },
  ...databaseQuestions,
  {
    name: "ca",
    asks: "The CA that signs the certificates.",
    words: [
      ["new", "a new CA, made here"],
      ["import", "a CA whose certificate and key you have as files"],
      ["corporate", "a CA below a root that you have elsewhere: a request for its certificate is made here"]
    ],
    usual: () => "new"
  },
  {
    name: "ca_cert_path",
    of: ["ca", "import"],
    asks: "The file with the certificate of the CA and its chain, as PEM. The service reads it there.",
    usual: () => "ca.pem",
    isNeeded: true,
    check: readable
  },
  {
    name: "ca_passphrase_file",
    of: ["ca", "import"],
    asks: "The file with the passphrase of the key; nothing if the key is not encrypted.",
    usual: () => "",
    check: (answer) => answer === "" ? Effect.undefined : readable(answer)
  },
  {
    name: "ca_key_path",
    of: ["ca", "import"],
    asks: "The file with the key of the CA, as PEM. The service reads it there.",
    usual: () => "ca.key",
    isNeeded: true,
    check: caFault
  },
  {
    name: "access",
    asks: "Who may ask for certificates. Control of each name is checked in any case.",
    words: [
      ["open", "every client that reaches the service"],
      ["networks", "clients in networks that you name"],
      ["credentials", "clients with a credential that you hand out (external account binding)"]
    ],
    usual: () => "open"
  },
  {
    name: "networks",
    kind: "list",
    of: ["access", "networks"],
    asks: "The addresses and networks of the clients. Revocation lists and the CA's certificate stay open to all.",
    usual: () => usualNetworks,
    isNeeded: true,
    check: (answer) => Effect.succeed(addressesFault(answer))
  },
  {
    name: "panel",
    asks: "Whether operators get a panel in the browser, on this machine alone (http://localhost:3001).",
    words: [["yes", "with a panel"], ["no", "only commands"]],
    usual: () => "yes"
  },
  {
    name: "operator",
    of: ["panel", "yes"],
    asks: "The name of the first operator, who is an admin.",
    usual: () => "admin",
    check: (answer) => Effect.succeed(readUsername(answer) === undefined ? `must have ${usernameForm}` : undefined)
  },
  {
    name: "operator_password",
    kind: "newSecret",
    of: ["panel", "yes"],
    asks: "The password of that operator; nothing to make the operator later.",
    usual: () => "",
    check: (answer, given) => Effect.succeed(passwordFault(answer, given))
  }
]

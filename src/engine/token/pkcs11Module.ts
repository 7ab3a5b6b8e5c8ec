import koffi from "koffi"

/*
 * A separate program that loads one PKCS#11 module and signs with one key of one token, for the process that started
 * it. A module is code of its vendor: it may hang or crash, and nothing but the end of its process ends a call that
 * hangs. Every call runs on the thread pool of this process, so that the program hears when its parent is gone.
 */

/** Where the key is, and how to log in. */
export interface Opening {
  readonly modulePath: string
  /** Empty if `slotId` names the token. */
  readonly tokenLabel: string
  readonly slotId: number
  /** Empty if `keyId` alone names the key. */
  readonly keyLabel: string
  /** The CKA_ID in hexadecimal. Empty if `keyLabel` alone names the key. */
  readonly keyId: string
  readonly pin: string
}

/** The mechanisms with which a key signs. The caller has computed the digest. */
export type Mechanism = "CKM_ECDSA" | "CKM_RSA_PKCS"

/** A question of the parent. */
export type TokenQuestion =
  | { readonly id: number; readonly open: Opening }
  | { readonly id: number; readonly sign: { readonly mechanism: Mechanism; readonly data: Uint8Array } }

/** The attributes of a public key, as the token has them. */
export type TokenPublicKey =
  | { readonly kind: "ec"; readonly parameters: Uint8Array; readonly point: Uint8Array }
  | { readonly kind: "rsa"; readonly modulus: Uint8Array; readonly exponent: Uint8Array }

/**
 * Why a question has no answer. `pin`: the token refused the PIN, or would lock after one more wrong PIN. `key`: the
 * configured key is not there, or is of a kind that cannot be used. `call`: anything else that may pass.
 */
export interface TokenFailure {
  readonly reason: "pin" | "key" | "call"
  readonly detail: string
}

/** The answer to the question of the same id. */
export type TokenAnswer =
  & { readonly id: number }
  & (
    | { readonly key: TokenPublicKey }
    | { readonly signature: Uint8Array }
    | { readonly failure: TokenFailure }
  )

/** The names of the return values that operators meet. */
const names: { readonly [code: number]: string } = {
  0x05: "CKR_GENERAL_ERROR",
  0x06: "CKR_FUNCTION_FAILED",
  0x0a: "CKR_CANT_LOCK",
  0x30: "CKR_DEVICE_ERROR",
  0x31: "CKR_DEVICE_MEMORY",
  0x32: "CKR_DEVICE_REMOVED",
  0x60: "CKR_KEY_HANDLE_INVALID",
  0x68: "CKR_KEY_FUNCTION_NOT_PERMITTED",
  0x70: "CKR_MECHANISM_INVALID",
  0x82: "CKR_OBJECT_HANDLE_INVALID",
  0xa0: "CKR_PIN_INCORRECT",
  0xa1: "CKR_PIN_INVALID",
  0xa2: "CKR_PIN_LEN_RANGE",
  0xa3: "CKR_PIN_EXPIRED",
  0xa4: "CKR_PIN_LOCKED",
  0xb0: "CKR_SESSION_CLOSED",
  0xb1: "CKR_SESSION_COUNT",
  0xb3: "CKR_SESSION_HANDLE_INVALID",
  0xe0: "CKR_TOKEN_NOT_PRESENT",
  0xe1: "CKR_TOKEN_NOT_RECOGNIZED",
  0x101: "CKR_USER_NOT_LOGGED_IN"
}
const pinRefusals = [0xa0, 0xa1, 0xa2, 0xa3, 0xa4]
const [alreadyLoggedIn, alreadyInitialized] = [0x100, 0x191]

/** A failure as an exception, for the way out of nested calls. */
class Failed extends Error {
  readonly reason: TokenFailure["reason"]
  constructor(reason: TokenFailure["reason"], detail: string) {
    super(detail)
    this.reason = reason
  }
}

// The functions used, with their places in CK_FUNCTION_LIST (PKCS #11 v2.40, section 5) and their parameters.
const functions = {
  C_Initialize: [0, "void *"],
  C_Finalize: [1, "void *"],
  C_GetSlotList: [4, "uint8_t, void *, void *"],
  C_GetTokenInfo: [6, "unsigned long, void *"],
  C_OpenSession: [12, "unsigned long, unsigned long, void *, void *, void *"],
  C_Login: [18, "unsigned long, unsigned long, void *, unsigned long"],
  C_GetAttributeValue: [24, "unsigned long, unsigned long, void *, unsigned long"],
  C_FindObjectsInit: [26, "unsigned long, void *, unsigned long"],
  C_FindObjects: [27, "unsigned long, void *, unsigned long, void *"],
  C_FindObjectsFinal: [28, "unsigned long"],
  C_SignInit: [42, "unsigned long, void *, unsigned long"],
  C_Sign: [43, "unsigned long, void *, unsigned long, void *, void *"]
} as const

type Name = keyof typeof functions
type Parameter = number | bigint | Buffer | null
type Call = (name: Name, ...parameters: ReadonlyArray<Parameter>) => Promise<number>

const wordBytes = 8
const word = (value: number | bigint): Buffer => {
  const octets = Buffer.alloc(wordBytes)
  octets.writeBigUInt64LE(BigInt(value))
  return octets
}
const readWord = (octets: Buffer, at = 0): bigint => octets.readBigUInt64LE(at)

/** Loads the module, and returns a function that calls it. The parameters stay alive until the call has ended. */
const load = (path: string): Call => {
  const list: [bigint | null] = [null]
  const code = Number(koffi.load(path).func("unsigned long C_GetFunctionList(_Out_ void **list)")(list))
  const [table] = list
  if (code !== 0 || table === null) throw new Failed("call", `C_GetFunctionList failed with ${nameOf(code)}`)
  const made = new Map<Name, (...all: ReadonlyArray<unknown>) => void>()
  const find = (name: Name) => {
    const [at, parameters] = functions[name]
    const pointer: unknown = koffi.decode(table, wordBytes * (at + 1), "void *")
    // koffi types what it decodes as `any`.
    const { async } = koffi.decode(pointer, koffi.proto(`unsigned long ${name}_type(${parameters})`)) as {
      readonly async: (...all: ReadonlyArray<unknown>) => void
    }
    made.set(name, async)
    return async
  }
  return (name, ...parameters) =>
    new Promise((resolve, reject) =>
      (made.get(name) ?? find(name))(...parameters, (error: Error | null, code: number | bigint) => {
        if (error === null) resolve(Number(code))
        else reject(error)
      })
    )
}

const nameOf = (code: number): string => names[code] ?? `CKR 0x${code.toString(16)}`

const [initialize, openSession] = [
  // CK_C_INITIALIZE_ARGS with CKF_OS_LOCKING_OK: several threads call the module.
  () => Buffer.concat([Buffer.alloc(4 * wordBytes), word(2), word(0)]),
  { serial: 4 }
]
const [loginRequired, pinFinalTry, pinLocked] = [0x4n, 0x20000n, 0x40000n]
const attribute = {
  class: 0x0,
  label: 0x3,
  keyType: 0x100,
  id: 0x102,
  modulus: 0x120,
  exponent: 0x122,
  parameters: 0x180,
  point: 0x181,
  alwaysAuthenticate: 0x202
} as const
const objectClass = { publicKey: 2, privateKey: 3 } as const
const mechanisms = { CKM_RSA_PKCS: 0x1, CKM_ECDSA: 0x1041 } as const
const keyTypes = { rsa: 0n, ec: 3n } as const
const labelBytes = 32
const flagsAt = 96
const mostSlots = 256
const mostOctets = 1024

/** A module with an open session, and the key in it. */
interface Opened {
  readonly call: Call
  readonly slot: bigint
  readonly privateKey: bigint
  readonly idle: Array<bigint>
}

const must = async (call: Call, name: Name, ...parameters: ReadonlyArray<Parameter>): Promise<void> => {
  const code = await call(name, ...parameters)
  if (code !== 0) throw new Failed("call", `${name} failed with ${nameOf(code)}`)
}

const slotsOf = async (call: Call): Promise<ReadonlyArray<bigint>> => {
  const slots = Buffer.alloc(mostSlots * wordBytes)
  const count = word(mostSlots)
  await must(call, "C_GetSlotList", 1, slots, count)
  return Array.from({ length: Number(readWord(count)) }, (_, index) => readWord(slots, index * wordBytes))
}

const tokenInfo = async (call: Call, slot: bigint): Promise<{ readonly label: string; readonly flags: bigint }> => {
  const info = Buffer.alloc(512)
  await must(call, "C_GetTokenInfo", slot, info)
  return { label: info.toString("utf8", 0, labelBytes).trimEnd(), flags: readWord(info, flagsAt) }
}

/** Finds the slot of the token. A token that is absent may come back. */
const findSlot = async (call: Call, { slotId, tokenLabel }: Opening): Promise<bigint> => {
  const slots = await slotsOf(call)
  if (tokenLabel === "") {
    if (!slots.includes(BigInt(slotId))) throw new Failed("call", `no token is in slot ${slotId}`)
    return BigInt(slotId)
  }
  const found: Array<bigint> = []
  for (const slot of slots) if ((await tokenInfo(call, slot)).label === tokenLabel) found.push(slot)
  const [slot, another] = found
  if (slot === undefined) throw new Failed("call", `no token has the label ${tokenLabel}`)
  if (another !== undefined) throw new Failed("key", `more than one token has the label ${tokenLabel}`)
  return slot
}

const newSession = async (call: Call, slot: bigint): Promise<bigint> => {
  const session = word(0)
  await must(call, "C_OpenSession", slot, openSession.serial, null, null, session)
  return readWord(session)
}

/**
 * Logs in, once. A token counts wrong PINs and locks itself. If one more wrong PIN would lock it, the PIN is not tried
 * at all, because somebody must find out first who gives wrong ones.
 */
const logIn = async (call: Call, slot: bigint, session: bigint, pin: string): Promise<void> => {
  const { flags } = await tokenInfo(call, slot)
  if ((flags & loginRequired) === 0n) return
  if ((flags & pinLocked) !== 0n) throw new Failed("pin", "the PIN of the token is locked")
  if ((flags & pinFinalTry) !== 0n) {
    throw new Failed("pin", "the token would be locked after one more wrong PIN, so the PIN was not tried")
  }
  const octets = Buffer.from(pin, "utf8")
  const code = await call("C_Login", session, 1, octets, octets.length)
  octets.fill(0)
  if (code === 0 || code === alreadyLoggedIn) return
  throw new Failed(pinRefusals.includes(code) ? "pin" : "call", `C_Login failed with ${nameOf(code)}`)
}

/** Encodes CK_ATTRIBUTEs. The values must stay alive as long as the result is in use. */
const template = (...attributes: ReadonlyArray<readonly [type: number, value: Buffer]>): Buffer =>
  Buffer.concat(
    attributes.map(([type, value]) => Buffer.concat([word(type), word(koffi.address(value)), word(value.length)]))
  )

const find = async (
  call: Call,
  session: bigint,
  attributes: ReadonlyArray<readonly [type: number, value: Buffer]>
): Promise<ReadonlyArray<bigint>> => {
  const [objects, count] = [Buffer.alloc(2 * wordBytes), word(0)]
  await must(call, "C_FindObjectsInit", session, template(...attributes), attributes.length)
  try {
    await must(call, "C_FindObjects", session, objects, 2, count)
  } finally {
    await call("C_FindObjectsFinal", session)
  }
  return Array.from({ length: Number(readWord(count)) }, (_, index) => readWord(objects, index * wordBytes))
}

/** Returns the value of an attribute, or undefined if the object does not have it. */
const read = async (call: Call, session: bigint, object: bigint, type: number): Promise<Buffer | undefined> => {
  const value = Buffer.alloc(mostOctets)
  const asked = template([type, value])
  const code = await call("C_GetAttributeValue", session, object, asked, 1)
  const length = readWord(asked, 2 * wordBytes)
  return code !== 0 || length > BigInt(mostOctets) ? undefined : value.subarray(0, Number(length))
}

/** Returns the public part of the key. A private key of an elliptic curve often has no point, so the pair is asked. */
const publicKeyOf = async (call: Call, session: bigint, privateKey: bigint): Promise<TokenPublicKey> => {
  const id = await read(call, session, privateKey, attribute.id)
  const label = await read(call, session, privateKey, attribute.label)
  const name = id !== undefined && id.length > 0
    ? [attribute.id, id] as const
    : [attribute.label, label ?? Buffer.alloc(0)] as const
  const [pair] = await find(call, session, [[attribute.class, word(objectClass.publicKey)], name])
  const part = async (type: number) =>
    await read(call, session, privateKey, type) ?? (pair === undefined ? undefined : read(call, session, pair, type))
  const kind = await read(call, session, privateKey, attribute.keyType)
  const type = kind === undefined ? undefined : readWord(kind)
  if (type === keyTypes.rsa) {
    const [modulus, exponent] = [await part(attribute.modulus), await part(attribute.exponent)]
    if (modulus !== undefined && exponent !== undefined) return { kind: "rsa", modulus, exponent }
  } else if (type === keyTypes.ec) {
    const [parameters, point] = [await part(attribute.parameters), await part(attribute.point)]
    if (parameters !== undefined && point !== undefined) return { kind: "ec", parameters, point }
  } else {
    throw new Failed("key", "the key is neither an RSA key nor one of an elliptic curve")
  }
  throw new Failed("key", "the token has no public key for the key; store it with the same CKA_ID")
}

const open = async (opening: Opening): Promise<Opened & { readonly key: TokenPublicKey }> => {
  const { keyId, keyLabel, modulePath, pin } = opening
  const call = load(modulePath)
  const code = await call("C_Initialize", initialize())
  if (code !== 0 && code !== alreadyInitialized) throw new Failed("call", `C_Initialize failed with ${nameOf(code)}`)
  const slot = await findSlot(call, opening)
  const session = await newSession(call, slot)
  await logIn(call, slot, session, pin)
  const wanted = [
    ...keyId === "" ? [] : [[attribute.id, Buffer.from(keyId, "hex")] as const],
    ...keyLabel === "" ? [] : [[attribute.label, Buffer.from(keyLabel, "utf8")] as const]
  ]
  const [privateKey, another] = await find(call, session, [
    [attribute.class, word(objectClass.privateKey)],
    ...wanted
  ])
  if (privateKey === undefined) throw new Failed("key", "the token has no private key of that label and id")
  if (another !== undefined) throw new Failed("key", "the token has more than one such key; key_id tells them apart")
  const asks = await read(call, session, privateKey, attribute.alwaysAuthenticate)
  if (asks?.[0] === 1) throw new Failed("key", "the key asks for the PIN at each signature, which is not supported")
  return { call, slot, privateKey, idle: [session], key: await publicKeyOf(call, session, privateKey) }
}

/** Signs in a session of its own. A session that failed is not used again, because its state is unknown. */
const sign = async (
  { call, idle, privateKey, slot }: Opened,
  { data, mechanism }: { readonly mechanism: Mechanism; readonly data: Uint8Array }
): Promise<Uint8Array> => {
  const session = idle.pop() ?? await newSession(call, slot)
  const [signature, length] = [Buffer.alloc(mostOctets), word(mostOctets)]
  const octets = Buffer.from(data)
  await must(call, "C_SignInit", session, Buffer.concat([word(mechanisms[mechanism]), Buffer.alloc(16)]), privateKey)
  await must(call, "C_Sign", session, octets, octets.length, signature, length)
  idle.push(session)
  return Uint8Array.from(signature.subarray(0, Number(readWord(length))))
}

let opened: Opened | undefined

const answer = async (question: TokenQuestion): Promise<TokenAnswer> => {
  const { id } = question
  try {
    if ("open" in question) {
      const { key, ...rest } = await open(question.open)
      opened = rest
      return { id, key }
    }
    if (opened === undefined) throw new Failed("call", "the token is not open")
    return { id, signature: await sign(opened, question.sign) }
  } catch (error) {
    if (error instanceof Failed) return { id, failure: { reason: error.reason, detail: error.message } }
    const detail = error instanceof Error ? error.message : String(error)
    return { id, failure: { reason: "call", detail: `the module cannot be used: ${detail}` } }
  }
}

const endMillis = 1000

/** Gives the module a moment to close its sessions. The end of a process by itself waits for calls that hang. */
const end = () => {
  const kill = () => process.kill(process.pid, "SIGKILL")
  setTimeout(kill, endMillis)
  void Promise.resolve(opened?.call("C_Finalize", null)).finally(kill)
}

// A signal to the whole process group is meant for the service. The service closes the channel when its work has ended.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {})
process.on("disconnect", end)
process.on("message", (question: TokenQuestion) => {
  void answer(question).then((said) => process.send?.(said, undefined, undefined, () => {}))
})

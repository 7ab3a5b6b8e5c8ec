import crypto from "node:crypto"
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"

/*
 * Work that the runtime does outside the event loop: access to files, and signatures that its threads make and verify.
 * How long such work takes is not repeatable. So the simulation must know whether such work is in progress, and decides
 * itself when the work is over.
 */

type Anything = (...args: ReadonlyArray<unknown>) => unknown

/** The number of requests to the runtime that are not answered yet. */
export const native = { pending: 0 }

type Give = () => void

/** The answers of the requests in progress. Once all have arrived, they are delivered in the order of the requests. */
const giving: Array<Give> = []
let giveLater: (give: Give) => void = (give) => give()

const begin = (): (give: Give) => void => {
  const at = giving.push(() => {}) - 1
  native.pending++
  return (give) => {
    giving[at] = give
    if (--native.pending === 0) { for (const give of giving.splice(0)) giveLater(give) }
  }
}

const promised = (self: object, call: Anything): Anything => (...args) => {
  const end = begin()
  return new Promise((resolve, reject) => {
    Promise.resolve(Reflect.apply(call, self, args)).then(
      (answer) => end(() => resolve(answer)),
      (error: unknown) => end(() => reject(error))
    )
  })
}

const calledBack = (call: Anything): Anything => (...args) => {
  const callback = args.at(-1)
  if (typeof callback !== "function") return Reflect.apply(call, crypto, args)
  const end = begin()
  const answered = (...results: ReadonlyArray<unknown>) => end(() => void Reflect.apply(callback, undefined, results))
  return Reflect.apply(call, crypto, [...args.slice(0, -1), answered])
}

const onPaths = "access chmod link lstat mkdir open readdir readFile rename rm stat unlink utimes writeFile".split(" ")
const onFiles = ["chmod", "close", "datasync", "read", "readFile", "stat", "sync", "write", "writeFile"]
const onThreads = ["generateKeyPair", "sign", "verify"]

const replaceAll = (object: object, names: ReadonlyArray<string>, make: (call: Anything) => Anything) => {
  const before = names.map((name) => [name, Reflect.get(object, name) as Anything] as const)
  for (const [name, call] of before) Reflect.set(object, name, make(call))
  return () => {
    for (const [name, call] of before) Reflect.set(object, name, call)
  }
}

/** Closes the files that processes had open when they were killed. */
const closing = new Set<() => Promise<void>>()

const opened = (open: typeof fs.open): Anything => async (...args) => {
  const file = await open(...args as Parameters<typeof fs.open>)
  closing.add(file.close.bind(file))
  replaceAll(file, onFiles, (one) => promised(file, one))
  return file
}

/** Counts the requests until the returned function is called. `later` calls each `give` once. */
export const countNative = (later: (give: Give) => void): () => void => {
  giveLater = later
  const undo = [
    replaceAll(fs, onPaths, (call) => promised(fs, call === fs.open ? opened(fs.open) : call)),
    replaceAll(crypto, onThreads, calledBack)
  ]
  syncBuiltinESMExports()
  return () => {
    for (const one of undo) one()
    for (const close of closing) void close()
    closing.clear()
    syncBuiltinESMExports()
  }
}

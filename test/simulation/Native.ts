import crypto from "node:crypto"
import fs from "node:fs/promises"
import { syncBuiltinESMExports } from "node:module"

/*
 * Work that the runtime does outside the event loop: files, and signatures on its threads. Its duration is not
 * repeatable, so a simulation has to know whether any is in progress.
 */

type Anything = (...args: ReadonlyArray<unknown>) => unknown

/** Requests begun and not answered yet. */
export const native = { pending: 0 }

const end = () => void native.pending--

const promised = (self: object, call: Anything): Anything => (...args) => {
  native.pending++
  const answer = Promise.resolve(Reflect.apply(call, self, args))
  answer.then(end, end)
  return answer
}

const calledBack = (call: Anything): Anything => (...args) => {
  const callback = args.at(-1)
  if (typeof callback !== "function") return Reflect.apply(call, crypto, args)
  native.pending++
  return Reflect.apply(call, crypto, [...args.slice(0, -1), (...results: ReadonlyArray<unknown>) => {
    end()
    Reflect.apply(callback, undefined, results)
  }])
}

const onPaths = "access chmod link lstat mkdir open readdir readFile rename rm stat unlink utimes writeFile".split(" ")
const onFiles = ["chmod", "close", "datasync", "readFile", "stat", "sync", "write", "writeFile"]
const onThreads = ["generateKeyPair", "sign"]

const replaceAll = (object: object, names: ReadonlyArray<string>, make: (call: Anything) => Anything) => {
  const before = names.map((name) => [name, Reflect.get(object, name) as Anything] as const)
  for (const [name, call] of before) Reflect.set(object, name, make(call))
  return () => {
    for (const [name, call] of before) Reflect.set(object, name, call)
  }
}

const opened = (call: Anything): Anything => (...args) =>
  Promise.resolve(Reflect.apply(call, fs, args)).then((file: unknown) => {
    if (typeof file === "object" && file !== null) replaceAll(file, onFiles, (one) => promised(file, one))
    return file
  })

/** Counts from now on, until the answer is called. */
export const countNative = (): () => void => {
  const undo = [
    replaceAll(fs, onPaths, (call) => promised(fs, call === fs.open ? opened(call) : call)),
    replaceAll(crypto, onThreads, calledBack)
  ]
  syncBuiltinESMExports()
  return () => {
    for (const one of undo) one()
    syncBuiltinESMExports()
  }
}

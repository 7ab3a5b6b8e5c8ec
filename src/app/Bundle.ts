import * as Fs from "node:fs"
import * as Module from "node:module"
import { dirname } from "node:path"
import * as Vm from "node:vm"
import * as Zlib from "node:zlib"

/*
 * Loads the built program, which is a single file, with the code that V8 compiled in an earlier process. V8 compiles a
 * function when it is first called. So a process stores its code when it ends, because only then the code includes the
 * functions that a start calls (docs/contribute/decisions/runtime.md). Older runtimes load this file before they are
 * refused, so it names nothing that they do not have.
 */

const checksumOctets = 4

/** Reads stored code. V8 itself would not notice if the file was damaged later, so the file begins with a checksum. */
const read = (file: string): Buffer | undefined => {
  try {
    const stored = Fs.readFileSync(file)
    const code = stored.subarray(checksumOctets)
    return stored.readUInt32BE() === Zlib.crc32(code) ? code : undefined
  } catch {
    return undefined
  }
}

/** Stores code. If the folder is read-only, nothing is stored. */
const write = (file: string, compiled: () => Buffer): void => {
  const unfinished = `${file}.unfinished`
  try {
    Fs.mkdirSync(dirname(file), { recursive: true })
    Fs.writeFileSync(unfinished, "") // before the code is made, because that takes some time
    const code = compiled()
    const checksum = Buffer.alloc(checksumOctets)
    checksum.writeUInt32BE(Zlib.crc32(code))
    Fs.writeFileSync(unfinished, Buffer.concat([checksum, code]))
    Fs.renameSync(unfinished, file)
  } catch {
    return
  }
}

/** A bundle that has been loaded. */
export interface Bundle<Exports> {
  readonly exports: Exports
  /** Stores the code that V8 has compiled so far, unless there is stored code. */
  readonly store: () => void
}

/**
 * Loads a bundle, a file of CommonJS, with the code that is stored in `folder`. Stored code is found by the version of
 * the runtime and by the content of the bundle. If it was compiled with other flags of V8, V8 ignores it.
 */
export const loadBundle = <Exports>(file: string, folder: string): Bundle<Exports> => {
  const text = Fs.readFileSync(file, "utf8")
  const stored = `${folder}/${process.version}-${process.arch}-${Zlib.crc32(text).toString(16)}`
  const code = read(stored)
  const script = new Vm.Script(`(function (exports, require, module, __filename, __dirname) { ${text}\n})`, {
    filename: file,
    ...code === undefined ? {} : { cachedData: code }
  })
  const module = { exports: {} as Exports }
  const evaluate = script.runInThisContext() as (...parameters: ReadonlyArray<unknown>) => void
  evaluate(module.exports, Module.createRequire(file), module, file, dirname(file))
  return {
    exports: module.exports,
    store: () => {
      if (code === undefined) write(stored, () => script.createCachedData())
    }
  }
}

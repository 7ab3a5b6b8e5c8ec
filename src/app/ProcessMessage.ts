import * as Schema from "effect/Schema"
import { everyRole } from "../domain/Role.ts"

/*
 * What a parent and the processes of its service tell each other. Both run the same build, so the words need not be
 * compatible with those of another version.
 */

/**
 * The configuration file as the parent has read it. It has a text, or the reason why it cannot be read, or neither if
 * it does not exist.
 */
const ReadFile = Schema.Struct({
  path: Schema.String,
  text: Schema.optionalKey(Schema.String),
  fault: Schema.optionalKey(Schema.String)
})

const Roles = Schema.Array(Schema.Literals(everyRole))

/** The part of the service that a child serves. */
export const Task = Schema.Struct({
  /** The number of the process. Number 0 has the roles other than acme. */
  process: Schema.Int,
  /** The roles of this process. */
  roles: Roles,
  /**
   * The roles of the service, if this process logs the records about the whole service. Empty in the other processes.
   */
  speaksFor: Roles,
  /** How many ACME requests the process handles at once. */
  requests: Schema.Int
})

/** The part of the service that a child serves. */
export type Task = typeof Task.Type

/** What a parent tells a child. Each question has an id, and the answer has the same id. */
export const ToChild = Schema.Union([
  Schema.Struct({ type: Schema.Literal("begin"), task: Task, file: ReadFile }),
  /** Asks the child to prepare to serve this configuration. */
  Schema.Struct({ type: Schema.Literal("build"), id: Schema.Int, file: ReadFile }),
  /** Asks the child to serve what it has prepared. */
  Schema.Struct({ type: Schema.Literal("publish"), id: Schema.Int }),
  /** Asks the child to drop what it has prepared. */
  Schema.Struct({ type: Schema.Literal("abandon") }),
  /** Asks the child whether it still answers. */
  Schema.Struct({ type: Schema.Literal("ping"), id: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("scrape"), id: Schema.Int }),
  /** Asks the child that serves the panel whether somebody can sign in. */
  Schema.Struct({ type: Schema.Literal("signIn"), id: Schema.Int }),
  /** Tells the child which loops and processes keep the service from being ready. */
  Schema.Struct({ type: Schema.Literal("service"), failing: Schema.Array(Schema.String) })
])

/** What a parent tells a child. */
export type ToChild = typeof ToChild.Type

/**
 * Whether somebody can sign in to the panel (`SignInState`), with the URL of a link as a text. `unknown` means that the
 * child could not find out.
 */
const SignIn = Schema.Union([
  Schema.Struct({ _tag: Schema.Literals(["nobody", "somebody", "unknown"]) }),
  Schema.Struct({ _tag: Schema.Literal("needsLink"), username: Schema.String }),
  Schema.Struct({ _tag: Schema.Literal("link"), username: Schema.String, url: Schema.String })
])

/** Whether somebody can sign in to the panel, as a child tells it. */
export type SignIn = typeof SignIn.Type

/** What a child answers. */
export const Reply = Schema.Union([
  Schema.Struct({ type: Schema.Literal("built"), id: Schema.Int, rebound: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("refused"), id: Schema.Int, code: Schema.Int, message: Schema.String }),
  Schema.Struct({ type: Schema.Literal("published"), id: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("pong"), id: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("scraped"), id: Schema.Int, text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("signIns"), id: Schema.Int, state: SignIn })
])

/** What a child answers. */
export type Reply = typeof Reply.Type

/** What a child tells its parent. The first state says that the child serves. */
export const ToParent = Schema.Union([
  Reply,
  Schema.Struct({ type: Schema.Literal("state"), failing: Schema.Array(Schema.String) })
])

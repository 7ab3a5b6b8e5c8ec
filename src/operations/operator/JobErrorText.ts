import { shown } from "../../domain/JobFailure.ts"

/** Returns a text without mail addresses, which viewers of jobs must not see. */
export const withoutAddresses = (text: string): string => text.replaceAll(/[^\s<>]+@[^\s<>]+/g, "***")

/**
 * Returns the stored error of jobs of a kind as operators see it where several jobs are told together. A mail server
 * that refuses an address repeats it, so deliveries are told without addresses.
 */
export const errorShown = (kind: string, stored: string): string =>
  kind === "notify_deliver" ? withoutAddresses(shown(stored)) : shown(stored)

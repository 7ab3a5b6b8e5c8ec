import { Brand } from "effect"

/** Record ids: lower-case hyphenated UUIDs; new ones are version 7, converted rows may hold version 4. */
export type AccountId = string & Brand.Brand<"AccountId">
export const AccountId = Brand.nominal<AccountId>()
export type OrderId = string & Brand.Brand<"OrderId">
export const OrderId = Brand.nominal<OrderId>()
export type AuthorizationId = string & Brand.Brand<"AuthorizationId">
export const AuthorizationId = Brand.nominal<AuthorizationId>()
export type ChallengeId = string & Brand.Brand<"ChallengeId">
export const ChallengeId = Brand.nominal<ChallengeId>()
export type JobId = string & Brand.Brand<"JobId">
export const JobId = Brand.nominal<JobId>()

const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether text is an id as this service writes it. Upper case and other spellings are not. */
export const isId = (text: string): boolean => form.test(text)

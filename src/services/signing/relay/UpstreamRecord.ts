import type * as Effect from "effect/Effect"

/* What the service stores about an order at the upstream, so that later attempts know it. */

/** What is known about the upstream's order. */
export interface StoredUpstreamOrder {
  readonly orderUrl: string | undefined
  readonly finalizeUrl: string | undefined
  readonly certificateUrl: string | undefined
  /** How many times the upstream was asked to open the order and did not answer with its URL. */
  readonly asks: number
  /** Epoch seconds of the last such request. */
  readonly askedAt: number | undefined
}

/** A certificate that an upstream issued. */
export interface RelayedCertificate {
  /** RFC 9773 section 4.1 */
  readonly certId: string
  /** The upstream's order for it, which says which upstream that was. */
  readonly orderUrl: string
}

/** Stores what outlives an attempt. */
export interface Keeper<E> {
  /** Called before the upstream is asked for an order, so that a lost answer is not forgotten: {@link StoredUpstreamOrder}. */
  readonly asked: (asks: number) => Effect.Effect<void, E>
  /**
   * Returns whether the upstream's order belongs to this order: an upstream may answer two equal requests with the same
   * order.
   */
  readonly opened: (orderUrl: string, finalizeUrl: string | undefined) => Effect.Effect<boolean, E>
  /** The upstream refused `replaces` for this reason, and opened the order without it. */
  readonly notReplaced: (error: string) => Effect.Effect<void>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Which of these upstream orders belong to no order here. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

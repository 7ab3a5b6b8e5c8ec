import type * as Effect from "effect/Effect"

/* What the service stores about an order at the upstream for later attempts. */

/** What is known about the upstream's order. */
export interface StoredUpstreamOrder {
  readonly orderUrl: string | undefined
  readonly finalizeUrl: string | undefined
  readonly certificateUrl: string | undefined
  /** How often the upstream was asked to open the order but did not return its URL. */
  readonly asks: number
  /** The time of the last of these requests, in epoch seconds. */
  readonly askedAt: number | undefined
}

/** A certificate that an upstream issued. */
export interface RelayedCertificate {
  /** The certID of the certificate (RFC 9773 section 4.1). */
  readonly certId: string
  /** The URL of the upstream order for this certificate. It shows which upstream issued the certificate. */
  readonly orderUrl: string
}

/** Stores what must outlive an attempt. */
export interface Keeper<E> {
  /**
   * Called before the upstream is asked for an order, so that the request is known even if its answer is lost ({@link
   * StoredUpstreamOrder}).
   */
  readonly asked: (asks: number) => Effect.Effect<void, E>
  /**
   * Stores the URLs of the upstream's order. Returns whether the upstream's order now belongs to this local order: an
   * upstream may answer two equal requests with the same order.
   */
  readonly opened: (orderUrl: string, finalizeUrl: string | undefined) => Effect.Effect<boolean, E>
  /** Called if the upstream refused `replaces` for this reason, but opened an order without `replaces`. */
  readonly notReplaced: (error: string) => Effect.Effect<void>
  readonly issued: (certificateUrl: string) => Effect.Effect<void, E>
  /** Returns those of the given upstream orders that belong to no local order. */
  readonly unclaimed: (urls: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, E>
}

import type { Config } from "./AppConfig.ts"

/**
 * Returns the host of a base URL that has already been checked. The host distinguishes this installation from others.
 */
export const hostOf = (baseUrl: string): string => new URL(baseUrl).hostname

/**
 * Returns the host by which people know this installation: the panel's host or, without a panel, the host of the ACME
 * endpoints.
 */
export const installationOf = (
  { admin, server }: {
    readonly admin: Pick<Config["admin"], "base_url" | "enabled">
    readonly server: Pick<Config["server"], "base_url">
  }
): string => hostOf(admin.enabled ? admin.base_url : server.base_url)

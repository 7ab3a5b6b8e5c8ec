/** The highest number of alternate chains that a certificate can have. */
export const mostAlternates = 4

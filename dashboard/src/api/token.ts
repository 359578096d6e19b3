// In this module's memory and nowhere else: a reload asks again.
let token = '';

export function currentToken(): string {
  return token;
}

export function setToken(next: string): void {
  token = next.trim();
}

/**
 * Take the token that `kubectl gpu dashboard` hands over after the #, and take it off the address
 * before anything else runs: what is after the # is sent to nobody, and this keeps it from history.
 */
export function takeHandedOver(): void {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found?.[1]) return;
  history.replaceState(null, '', location.pathname + location.search);
  setToken(decoded(found[1]));
}

/** A % in it may be one, or be there by itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

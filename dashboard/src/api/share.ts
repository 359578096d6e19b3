import { own } from '../format/own.ts';

/**
 * The next view with every part that is as before taken from the one before: what did not change is
 * the same object, and what draws it need not do so again.
 */
export function share<T>(before: unknown, next: T): T {
  if (Object.is(before, next)) return next;
  if (Array.isArray(before) && Array.isArray(next)) return shareList(before, next) as T;
  if (isRecord(before) && isRecord(next)) return shareRecord(before, next) as T;
  return next;
}

type Json = Record<string, unknown>;

function isRecord(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shareList(before: readonly unknown[], next: readonly unknown[]): readonly unknown[] {
  let same = before.length === next.length;
  const made = next.map((each, index) => {
    const shared = share(before[index], each);
    same &&= Object.is(shared, before[index]);
    return shared;
  });
  return same ? before : made;
}

function shareRecord(before: Json, next: Json): Json {
  const names = Object.keys(next);
  let same = names.length === Object.keys(before).length;
  const made = names.map((name): [string, unknown] => {
    const shared = share(own(before, name), next[name]);
    same &&= Object.hasOwn(before, name) && Object.is(shared, before[name]);
    return [name, shared];
  });
  return same ? before : Object.fromEntries(made);
}

// English words, the reader's own zone: the page is in English, and the reader is where they are.
const LANGUAGE = 'en-GB';

const clockOf = new Intl.DateTimeFormat(LANGUAGE, { hour: '2-digit', minute: '2-digit' });
const secondsOf = new Intl.DateTimeFormat(LANGUAGE, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const dayOf = new Intl.DateTimeFormat(LANGUAGE, { day: 'numeric', month: 'short' });
const exactOf = new Intl.DateTimeFormat(LANGUAGE, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});

const dated = (at: number) => new Date(at * 1000);
const sameDay = (a: number, b: number) => dated(a).toDateString() === dated(b).toDateString();

/** "14:02", and "11 Mar 14:02" where that was not today. */
export function clock(at: number, now: number): string {
  const time = clockOf.format(dated(at));
  return sameDay(at, now) ? time : `${dayOf.format(dated(at))} ${time}`;
}

/** "14:02:11", and with the day where that was not today. */
export function clockSeconds(at: number, now: number): string {
  const time = secondsOf.format(dated(at));
  return sameDay(at, now) ? time : `${dayOf.format(dated(at))} ${time}`;
}

/** All of it, with the zone: what pointing at a time shows. */
export function exact(at: number): string {
  return exactOf.format(dated(at));
}

/** For files: sorts, and says its zone. */
export function iso(at: number): string {
  return dated(at).toISOString();
}

import { useEffect, useState } from 'react';

const EVERY = 10_000;

/** The time in seconds, again every ten. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), EVERY);
    return () => clearInterval(timer);
  }, []);
  return now;
}

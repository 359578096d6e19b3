import { useEffect, useState } from 'react';

const PAUSE = 250;

interface Props {
  label: string;
  value: string;
  onSearch: (value: string) => void;
}

/** A field that filters as one types, and keeps up with the address when one goes back. */
export function Search({ label, value, onSearch }: Props) {
  const [typed, setTyped] = useState({ text: value, of: value });
  if (typed.of !== value) setTyped({ text: value, of: value });
  useEffect(() => {
    if (typed.text === value) return;
    const timer = setTimeout(() => onSearch(typed.text), PAUSE);
    return () => clearTimeout(timer);
  }, [typed.text, value, onSearch]);
  return (
    <input
      className="grow"
      type="search"
      aria-label={label}
      placeholder={label}
      value={typed.text}
      autoComplete="off"
      spellCheck={false}
      onChange={(event) => setTyped({ text: event.target.value, of: value })}
    />
  );
}

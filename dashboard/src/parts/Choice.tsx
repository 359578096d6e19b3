interface Props {
  label: string;
  value: string;
  choices: readonly (readonly [value: string, words: string])[];
  onChoose: (value: string) => void;
}

/** One of a few, as buttons in a row. */
export function Choice({ label, value, choices, onChoose }: Props) {
  return (
    <span className="choice" role="group" aria-label={label}>
      <span className="sub">{label}</span>
      {choices.map(([each, words]) => (
        <button
          key={each}
          type="button"
          aria-pressed={each === value}
          onClick={() => onChoose(each)}
        >
          {words}
        </button>
      ))}
    </span>
  );
}

interface Props {
  label: string;
  value: string;
  all: string;
  choices: readonly string[];
  onChoose: (value: string) => void;
}

/** One of a list, or all of them. */
export function Select({ label, value, all, choices, onChoose }: Props) {
  const there = !value || choices.includes(value) ? choices : [...choices, value];
  return (
    <select aria-label={label} value={value} onChange={(event) => onChoose(event.target.value)}>
      <option value="">{all}</option>
      {there.map((choice) => (
        <option key={choice} value={choice}>
          {choice}
        </option>
      ))}
    </select>
  );
}

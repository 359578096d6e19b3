const NBSP = '\u00a0';
const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const short = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** GPUs: to the hundredth, which is what a share is asked for in, without zeros at the end. */
export function gpus(count: number): string {
  return plain.format(Math.round(count * 100) / 100 + 0);
}

/** "1 GPU", "0.5 GPU", "2 GPUs". */
export function gpuWords(count: number): string {
  return `${gpus(count)}${NBSP}${count > 1 ? 'GPUs' : 'GPU'}`;
}

/** How many: "10,000". */
export function count(many: number): string {
  return plain.format(many);
}

/** "1 job", "12 jobs"; the plural is given where an s does not make it. */
export function counted(many: number, one: string, more = `${one}s`): string {
  return `${count(many)} ${many === 1 ? one : more}`;
}

/** A ratio as a percentage: "28 %". What is not nothing is never 0 %, what is not all never 100 %. */
export function percent(ratio: number): string {
  const rounded = Math.round(ratio * 100);
  if (rounded === 0 && ratio > 0) return `<${NBSP}1${NBSP}%`;
  if (rounded === 100 && ratio < 1) return `99${NBSP}%`;
  return `${rounded}${NBSP}%`;
}

/** MiB in the unit that reads best: "25 GiB", "512 MiB". */
export function memory(mib: number): string {
  if (mib >= 1024 * 1024) return `${short.format(mib / 1024 / 1024)}${NBSP}TiB`;
  if (mib >= 1024) return `${short.format(mib / 1024)}${NBSP}GiB`;
  return `${Math.round(mib)}${NBSP}MiB`;
}

/** "61 °C". */
export function celsius(degrees: number): string {
  return `${Math.round(degrees)}${NBSP}°C`;
}

/** GPU-hours: to the tenth, below one to the hundredth. What is not nothing is never 0. */
export function hours(many: number): string {
  if (many > 0 && many < 0.005) return `<${NBSP}0.01`;
  return (many < 1 ? plain : short).format(many);
}

/** A parameter: whole numbers and words as they are, others with four digits that count. */
export function parameter(text: string): string {
  const value = Number(text);
  const fraction = text.trim() !== '' && Number.isFinite(value) && !Number.isInteger(value);
  return fraction ? String(Number(value.toPrecision(4))) : text;
}

/** Any other measured number: four digits that count. */
export function measured(value: number): string {
  return new Intl.NumberFormat('en', { maximumSignificantDigits: 4 }).format(value);
}

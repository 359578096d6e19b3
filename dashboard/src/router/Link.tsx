import type { AnchorHTMLAttributes, MouseEvent, Ref } from 'react';

import { go, isOurs } from './address.ts';

interface Props extends AnchorHTMLAttributes<HTMLAnchorElement> {
  to: string;
  ref?: Ref<HTMLAnchorElement>;
}

/** A link to a page of ours: a real one, which can be opened beside, copied and gone back from. */
export function Link({ to, onClick, children, ...rest }: Props) {
  if (!isOurs(to)) return <span {...rest}>{children}</span>;
  const follow = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    const plain = !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
    if (event.defaultPrevented || event.button !== 0 || !plain) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a {...rest} href={to} onClick={follow}>
      {children}
    </a>
  );
}

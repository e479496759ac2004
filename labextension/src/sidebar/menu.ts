/** A menu that opens below a button of a toolbar. */

import { MenuSvg } from '@jupyterlab/ui-components';
import { CommandRegistry } from '@lumino/commands';

export interface MenuChoice {
  text: string;
  isOn: boolean;
  choose: () => void;
}

/** @param groups What can be chosen; there is a line between two groups. */
export function openMenu(button: HTMLElement, groups: readonly (readonly MenuChoice[])[]): void {
  const commands = new CommandRegistry();
  const menu = new MenuSvg({ commands });
  groups.forEach((choices, at) => {
    if (at > 0) menu.addItem({ type: 'separator' });
    choices.forEach(({ text, isOn, choose }, i) => {
      const command = `${at} ${i}`;
      commands.addCommand(command, {
        label: text,
        isToggleable: true,
        isToggled: () => isOn,
        execute: choose,
      });
      menu.addItem({ command });
    });
  });
  menu.aboutToClose.connect(() => {
    button.focus();
  });
  const { left, bottom } = button.getBoundingClientRect();
  menu.open(left, bottom);
}

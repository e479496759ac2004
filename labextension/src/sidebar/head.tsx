/** The line of buttons above the list: what is listed, in which order, and what else there is to see. */

import {
  CommandToolbarButton,
  ReactWidget,
  Toolbar,
  ToolbarButtonComponent,
  addToolbarButtonClass,
  filterIcon,
  filterListIcon,
  treeViewIcon,
} from '@jupyterlab/ui-components';
import type { LabIcon } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { useChanges } from '../home/model_signal';
import { tagIcon } from '../icon';
import { SHOW_PLACES, SHOW_TABLE } from './commands';
import type { SidebarParts } from './list';
import { openMenu } from './menu';
import type { MenuChoice } from './menu';
import type { ListSort } from './preferences';
import type { Grouping } from './sections';

export function addHead(toolbar: Toolbar, parts: SidebarParts): void {
  const { commands, trans } = parts;
  const add = (name: string, button: React.JSX.Element): void => {
    toolbar.addItem(name, addToolbarButtonClass(ReactWidget.create(button)));
  };
  add('filter', <FilterButton {...parts} />);
  add('tags', <TagsButton {...parts} />);
  add('order', <OrderButton {...parts} />);
  add('groups', <GroupsButton {...parts} />);
  toolbar.addItem('spacer', Toolbar.createSpacerItem());
  for (const id of [SHOW_TABLE, SHOW_PLACES])
    toolbar.addItem(id, new CommandToolbarButton({ commands, id, label: '' }));
  toolbar.node.setAttribute('aria-label', trans.__('Filter and order'));
}

function FilterButton({ model, tree, trans }: SidebarParts): React.JSX.Element {
  useChanges(model.changed, tree.changed);
  return (
    <ToolbarButtonComponent
      className={tree.isFilterOpen ? 'jp-mod-on' : ''}
      icon={filterIcon}
      tooltip={tree.isFilterOpen ? trans.__('Close the filter') : trans.__('Filter')}
      onClick={() => {
        if (tree.isFilterOpen && model.query.text) model.ask({ text: '' });
        tree.openFilter(!tree.isFilterOpen);
      }}
    />
  );
}

function TagsButton({ model, trans }: SidebarParts): React.JSX.Element {
  useChanges(model.changed);
  const { tag } = model.query;
  const tags = [...new Set([...(model.list?.tags ?? []), ...(tag ? [tag] : [])])];
  const choice = (text: string, value: string): MenuChoice => ({
    text,
    isOn: tag === value,
    choose: () => {
      model.ask({ tag: value });
    },
  });
  const none = { ...choice(trans.__('No tag yet: press F2 on an experiment'), ''), isOn: false };
  const every = [choice(trans.__('All tags'), '')];
  return (
    <MenuButton
      icon={tagIcon}
      tooltip={tag ? trans.__('Tag: %1', tag) : trans.__('Tags')}
      isOn={tag !== ''}
      groups={tags.length > 0 ? [every, tags.map((each) => choice(`#${each}`, each))] : [[none]]}
    />
  );
}

function OrderButton({ preferences, trans }: SidebarParts): React.JSX.Element {
  useChanges(preferences.changed);
  const { sort, isReversed } = preferences.values;
  const sorts = sortTexts(trans);
  const choices = Object.entries(sorts).map(([value, text]) => ({
    text,
    isOn: sort === value,
    choose: () => void preferences.set('sort', value as ListSort),
  }));
  const reverse = {
    text: trans.__('Reverse the order'),
    isOn: isReversed,
    choose: () => void preferences.set('isReversed', !isReversed),
  };
  const told = isReversed ? trans.__('Order: %1, reversed', sorts[sort]) : trans.__('Order: %1', sorts[sort]);
  return <MenuButton icon={filterListIcon} tooltip={told} groups={[choices, [reverse]]} />;
}

function GroupsButton({ preferences, trans }: SidebarParts): React.JSX.Element {
  useChanges(preferences.changed);
  const { grouping } = preferences.values;
  const texts: Record<Grouping, string> = { state: trans.__('By state'), notebook: trans.__('By notebook') };
  const choices = Object.entries(texts).map(([value, text]) => ({
    text,
    isOn: grouping === value,
    choose: () => void preferences.set('grouping', value as Grouping),
  }));
  return (
    <MenuButton icon={treeViewIcon} tooltip={trans.__('Groups: %1', texts[grouping])} groups={[choices]} />
  );
}

function sortTexts(trans: TranslationBundle): Record<ListSort, string> {
  return {
    created: trans.__('Newest'),
    ended: trans.__('Last ended'),
    name: trans.__('Name'),
    best: trans.__('Best value'),
  };
}

interface MenuButtonProps {
  icon: LabIcon;
  tooltip: string;
  isOn?: boolean;
  groups: readonly (readonly MenuChoice[])[];
}

function MenuButton({ icon, tooltip, isOn, groups }: MenuButtonProps): React.JSX.Element {
  return (
    <ToolbarButtonComponent
      className={isOn ? 'jp-mod-on' : ''}
      icon={icon}
      tooltip={tooltip}
      aria-haspopup="menu"
      onClick={(event) => {
        if (event?.currentTarget instanceof HTMLElement) openMenu(event.currentTarget, groups);
      }}
    />
  );
}

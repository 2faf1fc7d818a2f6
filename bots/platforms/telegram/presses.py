"""Buttons under our messages, out and in: a press says what the button says; it stores nothing."""

from datetime import datetime

from telegram import CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message

from bots.platforms.telegram.translate import Me, address_of
from core.domain.messages import Button, Inbound

LONGEST_DATA = 64
"""Bytes that Telegram keeps with a button. https://core.telegram.org/bots/api#inlinekeyboardbutton"""
OUT_OF_SIGHT = "This message is too old for its buttons. Please write it instead."


def keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    """One below the other. A button that says more than Telegram keeps is left out."""
    rows = [
        [InlineKeyboardButton(button.label, callback_data=button.says)]
        for button in buttons
        if len(button.says.encode()) <= LONGEST_DATA
    ]
    return InlineKeyboardMarkup(rows) if rows else None


def inbound(query: CallbackQuery, update_id: int, me: Me, at: datetime) -> Inbound | None:
    """None where the message is out of the bot's sight: its topic, and so its session, is unknown.

    Telegram does not say when it was pressed; ``at`` is now.
    """
    message = query.message
    if not isinstance(message, Message) or not message.is_accessible or not query.data:
        return None
    address = address_of(message, me)
    if address is None:
        return None
    return Inbound(
        address=address,
        update_id=str(update_id),
        user=str(query.from_user.id),
        user_name=query.from_user.full_name,
        text=query.data,
        sent_at=at,
    )

from __future__ import annotations

import pytest

from toolgate.core.errors import InvalidArgs
from toolgate.core.wire import loads


@pytest.mark.parametrize("text", ["9" * 5000, '{"n": [-' + "1" * 5000 + "]}", b"1" * 100_000])
def test_a_number_with_too_many_digits_is_the_callers_mistake(text: str | bytes) -> None:
    with pytest.raises(InvalidArgs, match="too many digits") as caught:
        loads(text)
    assert caught.value.fix

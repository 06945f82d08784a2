<?php mail('a@example.test', 'b', 'c');

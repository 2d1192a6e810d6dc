"""An index on object storage: uploaded, committed by one conditional write, cached, checked."""

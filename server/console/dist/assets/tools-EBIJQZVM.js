/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-K757RTOW.js";import"./chunk-OIRSEE5X.js";import"./chunk-EUZHU6I3.js";import"./chunk-43PWAYKM.js";export{b as default,a as verdict};

/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-AIVQM2XT.js";import"./chunk-34YWQW3E.js";import"./chunk-RNIMKIBM.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};

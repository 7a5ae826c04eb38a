/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-IHHASSCW.js";import"./chunk-MZCC5XV4.js";import"./chunk-MVWBEPCP.js";import"./chunk-GXWSIOA4.js";import"./chunk-3GWUOFJB.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
